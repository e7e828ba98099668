"""Records for a process on another machine, which does not see the files that their analysis names:
the files go along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mmgibbs.config import Analysis
from mmgibbs.validation.evaluation import Recorded


class Portable:
    """Records that can be pickled together with the pedigree and the relationship matrices, whole files."""

    def __init__(self, records: Recorded, files: list[tuple[str, bytes]] | None = None):
        self._records = records
        self._files = files  # None where they are where the analysis says

    def __reduce__(self) -> tuple[Any, ...]:
        files: list[tuple[str, bytes]] = []

        def pack(path: Path) -> Path:
            files.append((path.name, path.read_bytes()))
            return path

        with_files(self._records.analysis, pack)
        return Portable, (self._records, files)

    @contextmanager
    def records(self) -> Iterator[Recorded]:
        """The records; within the block their files are there."""
        if self._files is None:
            yield self._records
            return
        with TemporaryDirectory(prefix="mmgibbs-") as folder:
            remaining = enumerate(self._files)

            def unpack(_: Path) -> Path:
                number, (name, content) = next(remaining)
                path = Path(folder) / str(number) / name  # two files may have one name
                path.parent.mkdir()
                path.write_bytes(content)
                return path

            yield replace(self._records, analysis=with_files(self._records.analysis, unpack))


def with_files(analysis: Analysis, change: Callable[[Path], Path]) -> Analysis:
    """The analysis with change(path) in place of each file that its design is read from, records aside."""
    data, model = analysis.data, analysis.model
    if isinstance(data.pedigree, Path):
        data = data.model_copy(update={"pedigree": change(data.pedigree)})
    if data.genotypes is not None:
        data = data.model_copy(update={"genotypes": data.genotypes.with_paths(change)})
    random = {
        name: r.model_copy(update={"relationship": r.relationship.with_paths(change)})
        for name, r in model.random.items()
    }
    return analysis.model_copy(update={"data": data, "model": model.model_copy(update={"random": random})})
