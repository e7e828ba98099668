"""A regression as a notebook shows it: its options and, once it is fitted, its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

import numpy as np

HEADS = {
    "parameter": "parameter", "mean": "mean", "sd": "SD", "hpd_low": "HPD low", "hpd_high": "HPD high",
    "ess_bulk": "ESS", "rhat": "R-hat",
}  # fmt: skip
MAX_ROWS = 20
RIGHT = ' style="text-align:right"'


def as_html(call: str, summary: Mapping[str, np.ndarray] | None, n_parameters: int = 0) -> str:
    """HTML without style sheets or scripts. call: the estimator as it was made; summary: of the first parameters."""
    shown = f'<pre style="white-space:pre-wrap">{escape(call)}</pre>'
    if summary is None:
        return f"<div>{shown}</div>"
    head = "".join(f"<th{'' if key == 'parameter' else RIGHT}>{name}</th>" for key, name in HEADS.items())
    rows = "".join(f"<tr>{_cells(summary, i)}</tr>" for i in range(len(summary["parameter"])))
    more = n_parameters - len(summary["parameter"])
    note = f"<p>{more:,} more parameters are in <code>summary()</code>.</p>" if more > 0 else ""
    return f"<div>{shown}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{note}</div>"


def _cells(summary: Mapping[str, np.ndarray], row: int) -> str:
    """Numbers with as many decimals as show two digits of the posterior standard deviation."""
    sd = float(summary["sd"][row])
    places = max(0, 1 - math.floor(math.log10(sd))) if sd > 0 and math.isfinite(sd) else 3
    decimals = {"ess_bulk": 0, "rhat": 3}
    cells = [f"<td>{escape(str(summary['parameter'][row]))}</td>"]
    for key in list(HEADS)[1:]:
        value = float(summary[key][row])
        cells.append(f"<td{RIGHT}>{f'{value:,.{decimals.get(key, places)}f}' if math.isfinite(value) else ''}</td>")
    return "".join(cells)
