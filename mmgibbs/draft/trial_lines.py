"""The lines of an analysis file that are those of a trial."""

from __future__ import annotations

import json

from mmgibbs.draft.guess import Guess
from mmgibbs.draft.trial import Trial
from mmgibbs.draft.yaml_text import entry, yaml_text
from mmgibbs.pedigree.tables import counted

MIN_SITES_OF_FACTORS = 3
MAX_FIELDS = 6  # sites whose field trend is drafted; of more, the first ones are offered


def fixed_lines(g: Guess, keys: str) -> list[str]:
    """Sites where they are no traits of their own, and replicates; keys: of every effect."""
    trial = g.trial
    if trial is None:
        return []
    groups = []
    if trial.site is not None and not g.is_by_site:
        groups.append(([trial.site], trial.site.name, "sites"))
    replicates, _ = trial.group_names(g.is_by_site)
    if trial.replicate is not None and replicates is not None and (g.is_by_site or not trial.lacks_replicates):
        columns = [trial.replicate, *([trial.site] if trial.site is not None and not g.is_by_site else [])]
        groups.append((columns, replicates, f"replicates{' of each site' * (trial.site is not None)}"))
    lines = []
    for columns, name, what in groups:
        gaps = g.count_missing(*columns)
        lack = f"; {counted(gaps, 'record', 'lacks')} it: write the values, or use this line" if gaps else ""
        body = ", ".join(filter(None, (keys, "without_value: drop" if gaps else "")))
        effect = f"{yaml_text(name)}: {{{body}}}"
        lines.append(f"    {'# ' if gaps else ''}{effect}  # {what}{lack}")
    return [*lines, f"    # {entry(trial.line, '')}  # lines, fixed instead of random"]


def random_lines(g: Guess, trial: Trial) -> list[str]:
    """Lines, blocks, and the trend of the field."""
    genotyped, lines = g.genotyped
    relationship = "relationship: genomic" if g.genotypes is not None and genotyped == lines else ""
    omit = "unknown_level: omit" if g.count_missing(trial.line) else ""
    body = ", ".join(filter(None, (relationship, omit)))
    size = f"{trial.line.levels:,} lines, {trial.line.records_per_level:.3g} plots each"
    out = [f"    {entry(trial.line, body)}  # {size}"]
    if g.genotypes is not None and not relationship:
        out.append(f"    # {lines - genotyped:,} lines have no genotypes: without them, relationship: genomic")
    replicates, blocks = trial.group_names(g.is_by_site)
    if replicates is not None and trial.lacks_replicates and not g.is_by_site:
        parts = [part for part in (trial.site, trial.replicate) if part is not None]
        omit = "unknown_level: omit" if g.count_missing(*parts) else ""
        out.append(f"    {yaml_text(replicates)}: {{{omit}}}  # replicates, random: some sites have fewer than others")
    if trial.block is not None and blocks is not None:
        parts = [part for part in (trial.block, trial.replicate, trial.site) if part is not None]
        omit = "unknown_level: omit" if g.count_missing(*parts) else ""
        out.append(f"    {yaml_text(blocks)}: {{{omit}}}  # blocks{' of each site' * (trial.site is not None)}")
    return out + _field_trends(g, trial)


def _field_trends(g: Guess, trial: Trial) -> list[str]:
    """Correlated rows and columns of each field; as comments where they are many, or lines are not replicated."""
    if trial.row is None or trial.column is None:
        return []
    place = f"row: {yaml_text(trial.row.name)}, column: {yaml_text(trial.column.name)}"
    if trial.site is not None:
        place += f", within: {yaml_text(trial.site.name)}"
    relationship = f"relationship: {{kind: ar1, {place}}}"
    if not g.is_by_site:
        mark = "" if g.is_normal and trial.is_replicated else "# "
        return [f"    {mark}field: {{{relationship}}}  # the trend of the field: neighbours are correlated"]
    assert trial.site is not None
    trait, sites = g.traits[0], sorted(trial.site.values())
    is_too_many = len(sites) > MAX_FIELDS
    mark = "# " if is_too_many else ""
    said = "the trend of the field at each site: neighbours are correlated"
    out = [f"    # {said}{f'; the first {MAX_FIELDS} sites' if is_too_many else ''}"]
    for number, site in enumerate(sites[:MAX_FIELDS], start=1):
        name = f"{trait.label}|{site}"
        out.append(f"    {mark}field_{number}: {{traits: [{json.dumps(name, ensure_ascii=False)}], {relationship}}}")
    return out


def structure_lines(g: Guess) -> list[str]:
    """The section `variances` of a trial whose sites are traits."""
    trial = g.trial
    if trial is None or trial.site is None or not g.is_by_site:
        return []
    lines = []
    if trial.site.levels >= MIN_SITES_OF_FACTORS:
        why = "sites are correlated by one common factor"
        lines.append(f"  {yaml_text(trial.line.label)}: {{structure: factor_analytic}}  # {why}")
    _, blocks = trial.group_names(True)
    if blocks is not None:
        lines.append(f"  {yaml_text(blocks)}: {{structure: diagonal}}  # blocks of different sites are not correlated")
    return ["variances:", *lines, ""] if lines else []


def means_key(g: Guess) -> str:
    """Adjusted means of the lines of a trial, among the output."""
    return "" if g.trial is None or not g.is_normal else f", means: [{yaml_text(g.trial.line.label)}]"
