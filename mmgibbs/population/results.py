"""A described pedigree, and what it says in words: names and values for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mmgibbs.pedigree.tables import counted
from mmgibbs.population.parentage import Parentage

SHOWN_ANCESTORS = 5
SHOWN_GROUPS = 5


@dataclass(frozen=True)
class PedigreeFacts:
    """Facts of a population that follow from its pedigree.

    Attributes
    ----------
    facts : dict
        Counts and figures, as in pedigree.json.
    animals : polars.DataFrame
        A row for each animal: id, sire, dam, birth_year, inbreeding, equivalent_generations, reference.
    years : polars.DataFrame
        A row for each birth year: animals, parents known, equivalent generations, inbreeding.
    ancestors : polars.DataFrame
        The ancestors that explain most of the genes of the reference animals.
    notes : tuple of str
        What was decided while reading; warnings begin with "warning: ".
    directory : pathlib.Path or None
        Where they were written.
    parentage : Parentage or None
        Conflicts with genotypes, likely parents and animals with the same genotypes; None without genotypes.
    """

    facts: dict[str, Any]
    animals: pl.DataFrame
    years: pl.DataFrame
    ancestors: pl.DataFrame
    notes: tuple[str, ...]
    directory: Path | None = None
    parentage: Parentage | None = None

    def _repr_html_(self) -> str:
        from mmgibbs.report.notebook import lines_as_html

        return lines_as_html(describe_facts(self.facts, self.ancestors), self.notes)


def describe_facts(facts: dict[str, Any], ancestors: pl.DataFrame) -> list[str]:
    """Lines for the terminal and a notebook: the facts, and the ancestors that explain most."""
    named = fact_lines(facts)
    if ancestors.height:
        top = ancestors.head(SHOWN_ANCESTORS).iter_rows(named=True)
        named.append(
            ("Major ancestors", ", ".join(f"{row['ancestor']} {100 * row['marginal_share']:.1f} %" for row in top))
        )
    width = max(len(name) for name, _ in fact_lines(facts))
    return [f"{name:<{width}}  {value}" for name, value in named]


def fact_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value), in the order in which they are read."""
    known = facts["known_ancestors_by_generation"]
    inbreeding, ancestors = facts["inbreeding"], facts["effective_ancestors"]
    animals = f"{facts['animals']:,}; {facts['without_parents']:,} without parents, {facts['one_parent']:,} with one; "
    shares = ", ".join(f"{100 * share:.0f} %" for share in known)
    spread = f"mean {inbreeding['mean']:.4f}, highest {inbreeding['highest']:.4f}; "
    lines = [
        ("Animals", f"{animals}{facts['sires']:,} sires, {facts['dams']:,} dams"),
        ("Progeny", _family_words(facts["family_sizes"])),
        ("Reference population", f"{facts['reference']}: {facts['reference_animals']:,}"),
        ("Known ancestors", f"{shares} of the parents, grandparents, ..."),
        ("Equivalent generations", f"{facts['equivalent_generations']:.2f}"),
        ("Inbreeding of these", f"{spread}{100 * inbreeding['inbred']:.0f} % of the animals are inbred"),
        ("Effective population size", _size_words(facts)),
        (
            "Founders of these",
            f"{facts['founders']:,} (unknown parents count), effective number {facts['effective_founders']:.1f}",
        ),
        ("Ancestors of these", _ancestor_words(ancestors, facts["ancestors_of_half_the_genes"])),
    ]
    if "groups" in facts:
        lines.insert(1, ("Groups of unknown parents", _group_words(facts["groups"])))
    if facts["generation_intervals"]:
        paths = [f"{name} {path['years']:.1f}" for name, path in facts["generation_intervals"].items()]
        lines.append(("Generation interval, years", ", ".join(paths)))
    if "parentage" in facts:
        lines += parentage_lines(facts["parentage"])
    return lines


def parentage_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of a comparison with genotypes."""
    conflicts = f"{facts['conflicts']:,} of {facts['pairs']:,} pairs of parent and progeny are in conflict"
    return [
        ("Genotypes", f"{facts['genotyped']:,} animals, {facts['snps']:,} SNPs of {facts['genotypes']}"),
        (
            "Opposing homozygotes",
            f"at most {facts['highest_opposing']:,} of a parent and its progeny (error rate {facts['error_rate']:g}); "
            f"about {facts['unrelated_opposing']:,} of unrelated animals",
        ),
        (
            "Parents checked",
            f"{conflicts}; likely parents of {_likely_words(facts)}",
        ),
        ("Same genotypes", f"{counted(facts['duplicates'], 'pair')} of animals"),
    ]


def _likely_words(facts: dict[str, Any]) -> str:
    """'12 animals', '12 animals (known to be older: of 5)'."""
    n, n_older = facts["animals_with_likely_parents"], facts["animals_with_older_likely_parents"]
    return counted(n, "animal") + ("" if n == n_older else f" (known to be older than their progeny: of {n_older:,})")


def _group_words(groups: dict[str, dict[str, int]]) -> str:
    """'3: UPG_2000 (41 sires, 38 dams), ...'."""
    shown = [
        f"{name} ({counted(times['sire'], 'sire')}, {counted(times['dam'], 'dam')})"
        for name, times in list(groups.items())[:SHOWN_GROUPS]
    ]
    return f"{len(groups):,}: {', '.join(shown)}{', ...' if len(groups) > SHOWN_GROUPS else ''}"


def _family_words(sizes: dict[str, dict[str, float]]) -> str:
    parts = [f"{of['mean']:.1f} of a {role} on average, at most {of['largest']:,}" for role, of in sizes.items()]
    return "; ".join(parts) or "none"


def _size_words(facts: dict[str, Any]) -> str:
    if "rate_of_inbreeding" not in facts:
        return "not known: no reference animal has more than one equivalent generation of known ancestors"
    if "effective_size" not in facts:
        return "not known: no reference animal with more than one equivalent generation is inbred"
    size = facts["effective_size"]
    rate = f"{100 * facts['rate_of_inbreeding']:.2f} % a generation"
    source = f"from the increase in inbreeding of {counted(size['animals'], 'animal')}, {rate}"
    digits = 0 if size["ne"] >= 100 else 1
    error = "no SE from one animal" if size["se"] is None else f"SE {size['se']:,.{digits}f}"
    return f"{size['ne']:,.{digits}f} ({error}), {source}"


def _ancestor_words(effective: dict[str, float], half: int | None) -> str:
    low, high = f"{effective['lowest']:.1f}", f"{effective['highest']:.1f}"
    words = f"effective number {low if low == high else f'{low} to {high}'}"
    return words if half is None else f"{words}; {half:,} of them explain half of the genes"
