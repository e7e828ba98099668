"""Tables of a result: Polars frames that become frames of pandas without pyarrow, and tables of LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from mmgibbs.errors import ConfigError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]


class ResultFrame(pl.DataFrame):
    """A table of a result. It is a frame of Polars; what its methods return, such as `filter`, are plain ones."""

    def to_pandas(self, *, use_pyarrow_extension_array: bool = False, **settings: Any) -> pandas.DataFrame:
        """Return the table as a frame of pandas; pyarrow is used where it is installed, but need not be.

        Parameters
        ----------
        use_pyarrow_extension_array : bool, default False
            As in Polars; needs pyarrow.
        **settings : Any
            As in Polars; need pyarrow.

        Returns
        -------
        pandas.DataFrame
            The same columns and rows.

        Raises
        ------
        ConfigError
            pandas is not installed, or pyarrow where settings need it.
        """
        needs_pyarrow = use_pyarrow_extension_array or bool(settings)
        if find_spec("pandas") is None:
            raise ConfigError("to_pandas: pandas is not installed; install it with: pip install pandas")
        if needs_pyarrow and find_spec("pyarrow") is None:
            raise ConfigError(
                "to_pandas: its settings need pyarrow, which is not installed; install it with: "
                'pip install "mmgibbs[pandas]"'
            )
        if find_spec("pyarrow") is not None:
            return super().to_pandas(use_pyarrow_extension_array=use_pyarrow_extension_array, **settings)
        import pandas

        return pandas.DataFrame({column.name: column.to_numpy() for column in self})

    def to_latex(
        self,
        columns: Sequence[str] | None = None,
        *,
        rows: str | Sequence[str] | None = None,
        caption: str | None = None,
        label: str | None = None,
    ) -> str:
        r"""Return the table in LaTeX, for `\usepackage{booktabs}`.

        Numbers have as many decimals as show two digits of the error of their row (`sd`).

        Parameters
        ----------
        columns : sequence of str or None, default None
            Columns. None: of a summary the estimates with their errors and intervals, else all that have values.
        rows : str, sequence of str, or None, default None
            Names in the first column, or patterns such as "h2[*]". None: all rows.
        caption : str or None, default None
            Caption of a floating table; the text is escaped. None: the `tabular` alone.
        label : str or None, default None
            Label of the floating table.

        Returns
        -------
        str
            A `tabular` environment, within a `table` if there is a caption or a label.

        Raises
        ------
        ConfigError
            There is no such column, or no row has such a name.
        """
        from mmgibbs.report.latex import frame_as_latex

        return frame_as_latex(self, columns, rows, caption, label)
