"""Genomic relationships on the page: what was computed, families in a heat map, principal components."""

from __future__ import annotations

import numpy as np

from mmgibbs.report import plots
from mmgibbs.report.finished import Finished
from mmgibbs.report.html_tables import Column, Table, counted, figure, number


def genotyped_section(run: Finished, figures: plots.Figures) -> dict | None:
    """Make the section of genotyped animals; None for a run without relationships from genotypes."""
    kinds = {term: kind for term, kind in run.relationships.items() if "inverse_error" in kind}
    if not kinds:
        return None
    return {"tables": [_table(term, kind) for term, kind in kinds.items()], "figures": _figures(run, figures)}


def _table(term: str, kind: dict) -> Table:
    diagonal, tuned, means = kind["diagonal"], kind.get("tuned"), kind.get("pedigree_means")
    rows = [
        ("Relationships", kind["words"]),
        ("Genotyped animals, SNPs", f"{kind['genotyped']:,}, {kind['snps']:,}"),
        ("Blended with", f"{100 * kind['blend']:g} % of {kind['with']}"),
        ("Diagonal", f"{figure(diagonal['mean'])}, from {figure(diagonal['least'])} to {figure(diagonal['largest'])}"),
        ("Condition, largest error of the inverse", f"{figure(kind['condition'])}, {kind['inverse_error']:.1e}"),
        ("Degrees of freedom of the variance", f"{kind['degrees_of_freedom']:,}"),
    ]
    if means:
        genomic = kind["genomic_means"]
        both = f"{figure(genomic['diagonal'])} and {figure(means['diagonal'])}"
        rows.append(("Mean diagonal, genomic and pedigree, before blending", both))
        both = f"{figure(genomic['off_diagonal'])} and {figure(means['off_diagonal'])}"
        rows.append(("Mean off the diagonal, genomic and pedigree", both))
        if "correlation_off_diagonal" in kind:
            rows.append(("Their correlation off the diagonal", number(kind["correlation_off_diagonal"], 3)))
    if tuned and tuned["to"] != "none":
        rows.append(("Tuned, a + b G", f"a {number(tuned['a'], 3)}, b {number(tuned['b'], 3)}"))
    return Table(f"{term}: what was computed from the genotypes", [Column("What"), Column("Value")], rows)


def _figures(run: Finished, figures: plots.Figures) -> list[tuple[str, str, str]]:
    out = []
    if run.genotyped is not None and {"pc_1", "pc_2"} <= set(run.genotyped.columns):
        x, y = (run.genotyped[c].to_numpy() for c in ("pc_1", "pc_2"))
        shares = [f"{100 * float(run.genotyped[c][0]):.1f} %" for c in ("share_1", "share_2")]
        caption = (
            f"Second principal component (up; {shares[1]} of the variance of genotypes) against the first "
            f"({shares[0]}) of {counted(len(x), 'genotyped animal')}. Separate groups are families, breeds or lines."
        )
        heading, paint = "Principal components", plots.paint_cloud(x, y)
        out.append(figures.draw_item(heading, paint, f"{heading} of genotypes", caption, x_label="first"))
    if run.relationship_sample is not None:
        sample = run.relationship_sample
        m = round(sample.height**0.5)
        for column, what in (("genomic", "Genomic"), ("pedigree", "Pedigree")):
            if sample[column].null_count():
                continue
            K = sample[column].to_numpy().reshape(m, m)
            off = K[~np.eye(m, dtype=bool)]
            low, high = (float(np.quantile(off, q)) for q in (0.02, 0.98)) if off.size else (0.0, 1.0)
            caption = (
                f"{what} relationships among {counted(m, 'genotyped animal')}, relatives side by side (in the order of "
                f"the genomic ones): darker is closer{shades_words(K, low, max(high, low))}. Blocks along the "
                "diagonal are families."
            )
            paint, square, title = plots.paint_heat_map(K, low, high), (3.4, 3.4), f"{what} relationships"
            out.append(figures.draw_item(title, paint, title, caption, left=0.03, size=square, bottom=0.03))
    return out


def shades_words(K: np.ndarray, low: float, high: float) -> str:
    """', from 0 and below to 0.250 and above': of which values the lightest and the darkest shade are; '' where all are
    the same but those of animals with themselves."""
    if low == high:
        return ""
    below, above = " and below" * bool(K.min() < low), " and above" * bool(K.max() > high)
    return f", from {figure(low)}{below} to {figure(high)}{above}"
