"""Tables of a scan, their columns, and facts for gwas.json and for notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from mmgibbs.association.animals import Animals
from mmgibbs.association.scan import LEFT_OUT, Scan
from mmgibbs.association.statistics import ALPHA, false_discovery_rates, genomic_inflation
from mmgibbs.config.environments import BETWEEN_TRAIT_AND_LEVEL
from mmgibbs.config.traits import Trait
from mmgibbs.data.genotypes.file_format import GenotypeFile
from mmgibbs.errors import option
from mmgibbs.pedigree.tables import counted
from mmgibbs.runs.model_of_run import RunModel


class TraitColumns(NamedTuple):
    """Columns of one trait."""

    effect: str
    error: str
    log_p: str
    q: str


def trait_columns(trait: str) -> TraitColumns:
    """effect_TRAIT, se_TRAIT, log10_p_TRAIT (-log10 p), q_TRAIT."""
    return TraitColumns(f"effect_{trait}", f"se_{trait}", f"log10_p_{trait}", f"q_{trait}")


LARGE_INFLATION, SMALL_INFLATION = 1.2, 0.9  # lambda beyond which it is said


def association_frame(
    found: Scan, file: GenotypeFile, traits: tuple[str, ...], families: Sequence[str] = ()
) -> pl.DataFrame:
    """A row for each SNP of the file, in its order."""
    columns: dict[str, Any] = {name: file.snps[name] for name in ("snp", "chromosome", "position", "counted", "other")}
    columns |= {
        "frequency": found.frequency,
        "call_rate": found.call_rate,
        "left_out": pl.Series([why or None for why in found.left_out], dtype=pl.String),
        "exact": found.is_exact,
    }
    for t, trait in enumerate(traits):
        names = trait_columns(trait)
        columns |= {
            names.effect: found.tests.effect[:, t],
            names.error: found.tests.error[:, t],
            names.log_p: found.tests.log_p[:, t],
            names.q: false_discovery_rates(10.0 ** -found.tests.log_p[:, t]),
        }
    if len(traits) > 1:
        log_p = found.tests.joint_log_p
        columns |= {"chi2_joint": found.tests.joint_chi2, "log10_p_joint": log_p}
        columns["q_joint"] = false_discovery_rates(10.0**-log_p)
    for f, name in enumerate(families):
        names, tests = trait_columns(name), found.tests
        log_p, differences = tests.mean_log_p[:, f], tests.differences_log_p[:, f]
        columns |= {
            names.effect: tests.mean_effect[:, f],
            names.error: tests.mean_error[:, f],
            names.log_p: log_p,
            names.q: false_discovery_rates(10.0**-log_p),
            f"log10_p_differences_{name}": differences,
            f"q_differences_{name}": false_discovery_rates(10.0**-differences),
        }
    return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


def collect_facts(
    found: Scan,
    model: RunModel,
    file: GenotypeFile,
    animals: Animals,
    values: pl.DataFrame,
    seconds: float,
    families: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Collect the facts for gwas.json; values: of `association_frame`; seconds: estimated for exact tests."""
    tested = int((found.left_out == "").sum())
    facts: dict[str, Any] = {
        "run": str(model.directory),
        "method": model.method,
        "genotypes": file.name,
        "level": animals.level,
        "without_chromosome": file.snps["chromosome"].null_count(),
        "animals": len(animals.places),
        "records": int((animals.record_animal >= 0).sum()),
        "tested": tested,
        "left_out": {why: int((found.left_out == why).sum()) for why in LEFT_OUT.values()},
        "exact": int(found.is_exact.sum()),
        "estimated_seconds": seconds,
        "effective_tests": found.effective_tests,
        "threshold_log10_p": float(np.log10(max(found.effective_tests, 1.0) / ALPHA)),
        "threshold": f"{ALPHA} over the effective number of tests (Li & Ji 2005)",
        "lambda": {trait: genomic_inflation(found.tests.log_p[:, t]) for t, trait in enumerate(model.design.traits)},
    }
    families = families or {}
    if families:
        facts["environments"] = {name: [model.design.traits[t] for t in of] for name, of in families.items()}
        facts["lambda"] = {
            name: genomic_inflation(found.tests.mean_log_p[:, f]) for f, name in enumerate(families)
        } | facts["lambda"]
    if found.calibration is not None:
        facts["calibration"] = {
            "snps": found.calibration.n_snps,
            "gamma": found.calibration.gamma.tolist(),
            "variation": found.calibration.variation.tolist(),
        }
    columns = [trait_columns(trait).log_p for trait in model.design.traits]
    columns += ["log10_p_joint"] if len(columns) > 1 else []
    columns += [column for name in families for column in (trait_columns(name).log_p, f"log10_p_differences_{name}")]
    above = values.select(pl.col(columns) >= facts["threshold_log10_p"]).sum().row(0)
    return facts | {"significant": dict(zip(columns, above, strict=True))}


def describe_left_out(found: Scan) -> str:
    """'12 left out (call rate), 3 left out (does not vary)'."""
    counts = {why: int((found.left_out == why).sum()) for why in LEFT_OUT.values()}
    return ", ".join(f"{n:,} left out ({why})" for why, n in counts.items() if n)


def collect_notes(found: Scan, model: RunModel, facts: dict[str, Any]) -> list[str]:
    """Collect notes on the tests; warnings begin with 'warning: '."""
    notes = [words] if (words := describe_left_out(found)) else []
    is_tested = np.isfinite(found.tests.log_p).any(axis=1)
    for trait, log_p in zip(model.design.traits, found.tests.log_p.T, strict=True):
        if n := int((is_tested & np.isnan(log_p)).sum()):
            notes.append(f"{counted(n, 'SNP', 'is')} not tested on {trait}: confounded with its fixed effects")
    if found.calibration is not None:
        spread = ", ".join(f"{100 * v:.1f} %" for v in found.calibration.variation)
        notes.append(
            f"standard errors are calibrated by {found.calibration.n_snps} SNPs, whose ratios differ by {spread} "
            f"(coefficient of variation); {facts['exact']:,} tests with p < 1e-5 are exact"
        )
    if model.record.get("converged") is False:
        notes.append("warning: REML of the run has not converged: tests are at variances that are not its estimates")
    for trait, value in facts["lambda"].items():
        if value > LARGE_INFLATION and facts.get("loco"):
            notes.append(_explain_large_with_loco(trait, value))
        elif value > LARGE_INFLATION:
            notes.append(
                f"warning: lambda of {trait} is {value:.2f}, above 1: effects of many genes, or relationships that the "
                "model lacks (a random effect with relationship: genomic or pedigree)"
            )
        elif value < SMALL_INFLATION:
            notes.append(f"lambda of {trait} is {value:.2f}, below 1: {_why_small(model, facts)}")
    if facts.get("loco"):
        notes.append("relationships are without the SNPs of the chromosome that is tested")
        n_unknown = facts.get("without_chromosome", 0)
        if n_unknown:
            notes.append(f"{counted(n_unknown, 'SNP')} without a known chromosome: tested as the run is")
    elif model.uses_genotypes:
        notes.append(
            "the relationships of the run are from genotypes, which hold the tested SNPs too: tests are conservative; "
            f"{option('loco')} tests each chromosome without them"
        )
    return notes


def _explain_large_with_loco(trait: str, value: float) -> str:
    """Explain what raises lambda where relationships are without the tested chromosome."""
    loco = option("loco")
    return (
        f"lambda of {trait} is {value:.2f}, above 1: with {loco} all effects on a chromosome are in the tests of its "
        "SNPs, and not in the relationships. Many small effects raise lambda then, above all with few chromosomes and "
        "long linkage; that is no fault of the tests, and p values must not be divided by it. If lambda without "
        f"{loco} is above 1 too, the model lacks relationships"
    )


def _why_small(model: RunModel, facts: dict[str, Any]) -> str:
    """Explain what makes tests conservative."""
    if model.uses_genotypes and not facts.get("loco"):
        return "tests are conservative, as the relationships of the run hold the tested SNPs"
    return (
        "tests are conservative, as with variances of the run that are too large, or by chance, which few animals or "
        "few SNPs that are independent of each other leave"
    )


def find_families(traits: Sequence[Trait]) -> dict[str, list[int]]:
    """Name of the trait -> numbers of its environments, at least two."""
    families: dict[str, list[int]] = {}
    for number, trait in enumerate(traits):
        name, mark, level = trait.name.partition(BETWEEN_TRAIT_AND_LEVEL)
        if mark and level in trait.where.values():
            families.setdefault(name, []).append(number)
    return {name: members for name, members in families.items() if len(members) > 1}
