"""Tables of a result in LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from mmgibbs.errors import ConfigError, nearest
from mmgibbs.report.html_tables import MINUS, count_decimals, known, number
from mmgibbs.report.parameters import match_names

ESTIMATES = ("parameter", "mean", "sd", "hpd_low", "hpd_high", "ess_bulk", "rhat")  # of a summary
IN_UNITS = ("mean", "median", "sd", "mcse", "hpd_low", "hpd_high")  # columns whose decimals follow from the error
HEADS = {
    "sd": "SD",
    "hpd_low": "95\\,\\% HPD, low",
    "hpd_high": "high",
    "ess_bulk": "ESS",
    "ess_tail": "ESS, tail",
    "rhat": "$\\hat{R}$",
    "mcse": "MCSE",
    "pev": "PEV",
}
OF_ESTIMATES = {"mean": "Estimate", "sd": "SE"}  # heads of a summary by REML, which has no draws
_ESCAPED = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "|": "\\textbar{}"}
    | {"<": "\\textless{}", ">": "\\textgreater{}", MINUS: "$-$"}
)


def frame_as_latex(
    frame: pl.DataFrame,
    columns: Sequence[str] | None,
    rows: str | Sequence[str] | None,
    caption: str | None,
    label: str | None,
) -> str:
    """A `tabular` with rules of booktabs, in a floating table where it has a caption or a label.

    columns: None: those of ESTIMATES for a summary, else all; of both only columns that have values. rows: patterns of
    names in the first column.
    """
    if rows is not None and frame.width:
        names = match_names(frame.columns[0], "row", rows, frame[:, 0].cast(pl.String).unique().to_list())
        frame = frame.filter(frame[:, 0].cast(pl.String).is_in(names))
    is_estimated = {"mcse", "hpd_low"} <= set(frame.columns) and not frame["mcse"].count() + frame["hpd_low"].count()
    heads = HEADS | (OF_ESTIMATES if is_estimated else {})
    chosen = _chosen_columns(frame, columns)
    is_number = {name: frame.schema[name].is_numeric() for name in chosen}
    lines = [
        f"\\begin{{tabular}}{{{''.join('r' if is_number[name] else 'l' for name in chosen)}}}",
        "\\toprule",
        " & ".join(heads.get(name, escape(name.replace("_", " ").capitalize())) for name in chosen) + " \\\\",
        "\\midrule",
        *(" & ".join(_cell(row, name) for name in chosen) + " \\\\" for row in frame.iter_rows(named=True)),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if caption is not None or label is not None:
        head = [f"\\caption{{{escape(caption)}}}"] if caption is not None else []
        head += [f"\\label{{{label}}}"] if label is not None else []
        lines = ["\\begin{table}", "\\centering", *head, *lines, "\\end{table}"]
    return "\n".join(lines) + "\n"


def _chosen_columns(frame: pl.DataFrame, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        names = ESTIMATES if {"parameter", "mean", "sd"} <= set(frame.columns) else frame.columns
        return [name for name in names if name in frame.columns and frame[name].count()]
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in frame.columns:
            raise ConfigError(f"to_latex: there is no column '{name}'; {nearest(name, frame.columns, 'there are')}")
    if not names:
        raise ConfigError("to_latex: columns: expected at least one column, got none")
    return names


def _cell(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return escape(str(value))
    if isinstance(value, int):
        return escape(number(value, 0))
    error = row.get("sd")
    if column in IN_UNITS and known(error) and error:
        places = count_decimals(value, error) + (column == "mcse")
    else:
        places = {"ess_bulk": 0, "ess_tail": 0, "rhat": 3}.get(column, count_decimals(value, None))
    return escape(number(value, places))


def escape(text: str) -> str:
    """Text as LaTeX shows it."""
    return text.translate(_ESCAPED)
