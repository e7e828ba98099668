"""Tables -> `Design`: reading, joining, coding of levels, covariates, rank.

    prepare(analysis) -> Prepared(design, pedigree, levels, counts, ...)

Polars lives here; the solver core sees NumPy arrays only.
"""

from __future__ import annotations

__all__ = ["LevelLabels", "Prepared", "prepare"]


def __getattr__(name: str):
    if name == "prepare":
        from mmgibbs.data.flow import prepare

        return prepare
    if name in ("LevelLabels", "Prepared"):
        from mmgibbs.data import prepared

        return getattr(prepared, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
