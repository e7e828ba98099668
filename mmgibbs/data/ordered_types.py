"""The order of ordered dictionaries in Arrow and Parquet files, which Polars reads without it."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from mmgibbs.config.frames import keep_orders
from pedigree.contents import unzip
from pedigree.tables import Source

_FILE_OF_ARROW = b"ARROW1"
_FILE_OF_PARQUET = b"PAR1"


def read_orders(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    """The frame with such columns as Enum; source: what it was read from.

    Only pyarrow reads the order. Without it the levels stay words, whose order a model that needs one asks for.
    """
    words = [name for name, kind in frame.schema.items() if kind == pl.Categorical]
    if not words or isinstance(source, pl.DataFrame) or find_spec("pyarrow") is None:
        return frame
    import pyarrow.ipc
    import pyarrow.parquet

    content = unzip(Path(source).read_bytes(), Path(source).name)
    if content.startswith(_FILE_OF_PARQUET):
        return keep_orders(frame, pyarrow.parquet.read_table(io.BytesIO(content), columns=words))
    is_file = content.startswith(_FILE_OF_ARROW)
    reader = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(io.BytesIO(content))
    return keep_orders(frame, reader.read_all().select(words))
