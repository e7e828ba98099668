"""A result as a notebook shows it: what was run, its warnings, a table of the parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import polars as pl

from mmgibbs.report.findings import attention, said_at_the_end
from mmgibbs.report.html_tables import count_decimals, known, number
from mmgibbs.report.parameters import bound_as_0
from mmgibbs.results.tables import was_drawn

ROWS = 40
HEADS = ("parameter", "mean", "SD", "HPD low", "HPD high", "ESS", "R-hat")
OF_ESTIMATES = ("parameter", "estimate", "standard error")  # where nothing was drawn
OF_GIVEN = ("parameter", "value")  # of BLUP, whose variances are given
ALERT = ' style="color:#c75000;font-weight:600"'


def text_as_html(text: str) -> str:
    """Text in columns, as it is."""
    return f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'


def lines_as_html(lines: Iterable[str], notes: Iterable[str] = (), table: pl.DataFrame | None = None) -> str:
    """Lines as they are, a table below them, and notes, of which those that begin with 'warning: ' stand out."""
    listed = (f"<li{ALERT if note.startswith('warning: ') else ''}>{escape(note)}</li>" for note in notes)
    below = "".join(listed)
    rows = "" if table is None else table._repr_html_()
    return f"<div>{text_as_html(chr(10).join(lines))}{rows}{f'<ul>{below}</ul>' if below else ''}</div>"


def as_html(summary: pl.DataFrame, record: Mapping, directory: Path) -> str:
    """HTML without style sheets or scripts, so that it looks right in every notebook, light or dark."""
    facts = " &middot; ".join(escape(text) for text in (str(record.get("name", "")), *_facts(record)) if text)
    warnings = "".join(f"<li{ALERT}>{escape(text)}</li>" for text in said_at_the_end(summary, record))
    heads: tuple[str, ...] = HEADS if was_drawn(summary) else OF_ESTIMATES
    if record.get("method") == "blup":
        heads = OF_GIVEN
    head = "".join(f'<th style="text-align:{"left" if i == 0 else "right"}">{h}</th>' for i, h in enumerate(heads))
    body = "".join(_row(row, len(heads) - 1) for row in bound_as_0(summary).head(ROWS).iter_rows(named=True))
    more = (
        f"<p>{summary.height - ROWS:,} more parameters are in <code>summary</code>.</p>"
        if summary.height > ROWS
        else ""
    )
    warned = f"<ul>{warnings}</ul>" if warnings else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f"<div><p><strong>{facts}</strong></p>{warned}{table}{more}<p><code>{escape(str(directory))}</code></p></div>"
    )


def _facts(record: Mapping) -> list[str]:
    data = record.get("data", {})
    records, animals = data.get("records", {}).get("used"), data.get("animals")
    return [
        f"{records:,} records" if records else "",
        f"{animals:,} animals" if animals else "",
        f"{record['kept_draws_per_chain']:,} kept draws per chain" if "kept_draws_per_chain" in record else "",
    ]


def _row(row: Mapping, numbers: int) -> str:
    places = count_decimals(row["mean"], row["sd"])
    values = row["mean"], row["sd"] or None, row["hpd_low"], row["hpd_high"]
    shown = [number(value, places) for value in values]
    shown += [number(row["ess_bulk"], 0), number(row["rhat"], 3) if known(row["rhat"]) else ""]
    style = ALERT if attention(dict(row)) else ""
    cells = "".join(f'<td style="text-align:right">{text}</td>' for text in shown[:numbers])
    return f'<tr{style}><td style="text-align:left">{escape(str(row["parameter"]))}</td>{cells}</tr>'
