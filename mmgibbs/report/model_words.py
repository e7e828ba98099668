"""The model in words: its terms and equations, their relationships, variances and priors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mmgibbs.data.levels import natural
from mmgibbs.models.families import FAMILIES, NORMAL
from mmgibbs.models.priors import FLAT, PROPER, find_prior
from mmgibbs.models.structures import STRUCTURES
from mmgibbs.report.html_tables import Column, Table, counted, counts, listed
from mmgibbs.results.relationships import describe_relationships


def component_label(effect: str, trait: str, term: str = "", several: bool = False) -> str:
    """'genetic direct, weaning_weight'; the term alone where the effect has no name."""
    label = " ".join(piece for piece in (term if several or not effect else "", effect) if piece)
    return f"{label}, {trait}" if label else trait


def model_equations(analysis: dict, intercept_traits: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """(trait, or what lies behind its records; what it is the sum of) for each trait."""
    model = analysis.get("model", {})
    out = []
    for trait, of in analysis.get("traits", {}).items():
        parts = ["intercept"] if trait in intercept_traits else []
        parts += [name for name, fixed in (model.get("fixed") or {}).items() if trait in fixed.get("traits", [trait])]
        for name, random in (model.get("random") or {}).items():
            for effect, spec in _effects(random).items():
                if trait in (spec.get("traits") or [trait]):
                    curve = " curve" if spec.get("legendre") or spec.get("covariates") else ""
                    level = describe_level(spec) or name
                    of_level = f" ({level})" if effect or level != name else ""
                    parts.append(f"{name}{'.' + effect if effect else ''}{curve}{of_level}")
        for name, markers in (model.get("markers") or {}).items():
            if trait in (markers.get("traits") or [trait]):
                parts.append(f"{name} (SNP effects, {markers.get('level')})")
        scale, exposure = link_name(of), of.get("exposure")
        per = f" per unit of {exposure}" if exposure else ""
        out.append((f"{scale} of {trait}{per}" if scale else trait, [*parts, "residual"]))
    return out


def link_name(trait: dict) -> str:
    """Name what follows the linear model where the records do not: 'liability', 'log rate', 'log' or ''."""
    family = FAMILIES.get(trait.get("type", NORMAL))
    return "" if family is None else family.name_link(bool(trait.get("log")))


def underlying_words(traits: Mapping[str, dict]) -> str:
    """'the liability or log rate behind it, or its logarithm': of which records the sum is not; '' if of all it is."""
    scales = dict.fromkeys(link_name(trait) for trait in traits.values())
    hidden = " or ".join(scale for scale in scales if scale not in ("", "log"))
    return ", or ".join(
        [*([f"the {hidden} behind it"] if hidden else []), *(["its logarithm"] if "log" in scales else [])]
    )


SYMBOLS = {  # what the covariance matrix of the levels of a random effect is
    "A": "has the relationships of the pedigree",
    "G": "without a name below it has the relationships by genotypes",
    "D": "has the dominance relationships by genotypes",
    "H": "has the relationships of the pedigree and, between genotyped animals, those by genotypes",
    "C": "has the covariances of plots, times or points of a curve, up to the variance",
    "K": "is the user\u2019s relationship matrix",
}


def _effects(random: dict) -> dict[str, dict]:
    return random.get("effects") or {"": random}


def residuals_words(record: dict) -> str:
    """Describe the records between which R differs; '' if it is one matrix for all."""
    analysis, data = record["analysis"], record.get("data", {})
    used = data.get("records", {}).get("used")
    by = (analysis.get("variances", {}).get("residual") or {}).get("by")
    sentences = {
        "observed traits": any(n != used for n in data.get("observations", {}).values()),
        "weight": analysis.get("data", {}).get("weights") is not None,
        f"residual class ({by})": by is not None,
    }
    what = [words for words, is_so in sentences.items() if is_so]
    return f"between records with different {listed(what, 'or')}" if what else ""


def model_table(
    record: dict, intercept_traits: Sequence[str] = (), coefficients: Mapping[str, int] | None = None
) -> Table:
    """Make the table of every term of the model: its kind, the traits that it acts on, the treatment of its variance.

    coefficients: of each covariate, on one trait (their number depends on whether there is a constant already).
    """
    analysis, levels = record["analysis"], record.get("levels", {})
    traits, variances = list(analysis.get("traits", {})), analysis.get("variances", {})
    estimated, solved = record.get("method") == "reml", record.get("method") in ("blup", "reml")

    def describe_traits(spec: dict) -> str:
        chosen = spec.get("traits") or traits
        return "all traits" if len(traits) > 1 and list(chosen) == traits else ", ".join(chosen)

    rows, coefficients = [], coefficients or {}
    if intercept_traits:
        every = describe_traits({"traits": list(intercept_traits)})
        rows.append(("intercept", "fixed", every, levels.get("intercept"), "none" if solved else "flat prior"))
    for name, fixed in (analysis["model"].get("fixed") or {}).items():
        rows.append(
            (
                name,
                f"fixed {_fixed_kind(name, fixed)}",
                describe_traits(fixed),
                coefficients.get(name, levels.get(name)),
                "none" if solved else fixed_prior_words(fixed.get("prior", "flat"), fixed.get("traits") or traits),
            )
        )
    relationships = describe_relationships(record)
    for name, random in (analysis["model"].get("random") or {}).items():
        related = related_words(relationships[name]["sentence"], str(random.get("relationship", "")))
        related += _groups_words(record) if relationships[name]["of_pedigree"] else ""
        for effect, spec in _effects(random).items():
            curve = ""
            if spec.get("legendre"):
                legendre = spec["legendre"]
                curve = f", Legendre polynomials of {legendre.get('column')} up to degree {legendre.get('degree')}"
            elif spec.get("covariates"):
                curve = f", regression on {', '.join(spec['covariates'])}"
            level = describe_level(spec) or name
            title = f"{name}.{effect}" if effect else name
            rows.append(
                (
                    title,
                    f"random effect of {_level_words(spec, level)}{curve}; {related}",
                    describe_traits(spec),
                    levels.get(name),
                    _treated(variances, name, estimated),
                )
            )
    snps = record.get("data", {}).get("genotypes", {}).get("kept", {}).get("SNPs")
    for name, markers in (analysis["model"].get("markers") or {}).items():
        fixed = (
            "fixed at its given value" if (markers.get("variance") or {}).get("fixed") else "sampled with the effects"
        )
        rows.append((name, f"effects of SNPs, prior {markers.get('prior')}", describe_traits(markers), snps, fixed))
    weights = analysis.get("data", {}).get("weights")
    rows.append(
        (
            "residual",
            f"random; weighted by {weights}" if weights else f"random{_correlations_clause(variances)}",
            describe_traits({}),
            record.get("data", {}).get("records", {}).get("used"),
            _residual_treated(analysis, estimated) + _classes_clause(record),
        )
    )
    size = "Levels or coefficients" if coefficients else "Levels"
    columns = [
        Column("Term"),
        Column("What it is", "wide"),
        Column("Acts on"),
        Column(size, "number"),
        Column("Variance", "wide"),
    ]
    sizes = counts([row[3] for row in rows])
    return Table("Terms of the model", columns, [(*row[:3], n, row[4]) for row, n in zip(rows, sizes, strict=True)])


def describe_level(effect: Mapping[str, Any]) -> str:
    """The column of the levels of a random effect of run.json; of several levels per record their columns or group."""
    if effect.get("mates"):
        mates = effect["mates"]
        return f"{'others' if mates['others'] else 'all'} of the same {mates['group']}"
    return " + ".join(effect.get("levels") or ()) or str(effect.get("level") or "")


def _level_words(effect: dict, level: str) -> str:
    columns = effect.get("interaction")
    return f"the interaction of {' and '.join(columns)}" if columns else level


def related_words(sentence: str, written: str) -> str:
    """The sentence with the name of a relationship file in place of its path, which says where on a machine it lay."""
    if not written or not sentence.endswith(written):
        return sentence
    return sentence.removesuffix(written) + re.split(r"[/\\]", written)[-1]


def _groups_words(record: dict) -> str:
    """', with 2 random unknown-parent groups among its levels'; '' without such groups, and of metafounders."""
    n, groups = record.get("data", {}).get("groups"), record["analysis"].get("data", {}).get("groups")
    effect = groups.get("effect", "random") if groups else None
    if not n or effect not in ("random", "fixed"):
        return ""
    return f", with {counted(n, f'{effect} unknown-parent group')} among its levels"


def _fixed_kind(name: str, fixed: dict) -> str:
    column = "" if fixed.get("column", name) == name else f" ({fixed['column']})"
    columns, numbers = fixed.get("interaction") or (), fixed.get("covariates") or ()
    if columns:
        classes = [c for c in columns if c not in numbers]
        if not numbers:
            return f"class effect, interaction of {' and '.join(classes)}"
        column = f", {'product of ' if len(numbers) > 1 else ''}{' and '.join(numbers)}"
        fixed = fixed | {"by": " and ".join(classes)}
    if fixed.get("kind", "class") == "class":
        return f"class effect{column}"
    legendre, by = fixed.get("legendre"), fixed.get("by")
    curve = (
        f"Legendre polynomials up to degree {legendre['degree']}"
        if legendre
        else f"polynomial of degree {fixed.get('degree') or 1}"
    )
    return f"covariate{column}, {curve}" + (f", within {by}" if by else "")


def _classes_clause(record: dict) -> str:
    """', one for each class of housing (indoor, outdoor)'."""
    by = (record["analysis"].get("variances", {}).get("residual") or {}).get("by")
    classes = record.get("data", {}).get("residual_classes", {})
    return f", one for each class of {by} ({', '.join(sorted(classes, key=natural))})" if by else ""


def has_correlated_residuals(record: dict) -> bool:
    """Residuals of different records are correlated."""
    residual = record["analysis"].get("variances", {}).get("residual") or {}
    kinds = [residual.get("relationship"), *((c or {}).get("relationship") for c in _classes(residual).values())]
    return bool(residual.get("known") or any(kinds))


def _classes(residual: dict) -> dict:
    return residual.get("classes") or {}


def _correlations_clause(variances: dict) -> str:
    """'; correlated between neighbouring rows and columns (AR1)'; of each class that has another one."""
    residual = variances.get("residual") or {}
    clauses = [_directions(residual.get("relationship"))]
    clauses += [
        f"in {name} {_directions(of_class['relationship'])}"
        for name, of_class in _classes(residual).items()
        if (of_class or {}).get("relationship")
    ]
    return "".join(f"; {clause}" for clause in clauses if clause)


def _directions(kind: dict | str | None) -> str:
    if not isinstance(kind, dict):
        return ""
    within = f" within {kind['within']}" if kind.get("within") else ""
    if kind.get("time"):
        return f"correlated between successive {kind['time']}{within} (AR1)"
    directions = [f"{key}s" for key in ("row", "column") if kind.get(key)]
    return f"correlated between neighbouring {' and '.join(directions)}{within} (AR1)"


def _treated(variances: dict, name: str, estimated: bool = False) -> str:
    settings = variances.get(name) or {}
    if variances.get("mode") == "fixed" or settings.get("fixed"):
        return "fixed at its given value"
    if estimated:
        return "estimated by REML" + structure_clause(settings.get("structure"))
    structure, prior = settings.get("structure"), settings.get("prior")
    if isinstance(structure, dict) and prior in (None, "flat"):
        prior = dict(PROPER)
    return f"sampled, {prior_words(prior)}{structure_clause(structure)}"


def structure_clause(structure: str | dict | None) -> str:
    """', factor-analytic with 2 factors'; nothing for a full matrix."""
    keys = structure if isinstance(structure, dict) else {"kind": structure or "full"}
    kind = keys.get("kind", "full")
    words = STRUCTURES[kind].describe(keys) if kind in STRUCTURES else f"structure {kind}"  # of a later version
    return (f", {words}" if words else "") + (", equal variances" if keys.get("variances") == "equal" else "")


def _has_unit_residual(trait: dict) -> bool:
    family = FAMILIES.get(trait.get("type", NORMAL))
    return family is not None and family.has_unit_residual


def _residual_treated(analysis: dict, estimated: bool = False) -> str:
    """Describe the treatment of R: as of any matrix, but residual variances of liabilities of categories are 1."""
    traits, variances = analysis["traits"], analysis.get("variances", {})
    unit = [name for name, trait in traits.items() if _has_unit_residual(trait)]
    settings = variances.get("residual") or {}
    by = settings.get("by")
    if settings.get("known"):
        return "known: the covariance matrix of the means of a first analysis"
    if not unit:
        return _treated(variances, "residual", estimated)
    convention = "1 by convention" + (f" in one class of {by}" if by else "")
    if len(traits) == 1 and not by:
        return convention
    of = "" if len(traits) == 1 else f" for {', '.join(unit)}"
    return f"{convention}{of}; else {_treated(variances, 'residual')}"


def fixed_prior_words(prior: dict | str, traits: Sequence[str]) -> str:
    """Describe the prior of a fixed effect on some traits: flat, {variance: V} or {variance: {trait: V}}."""
    variance = prior.get("variance") if isinstance(prior, dict) else None
    if variance is None:
        return "flat prior"
    if not isinstance(variance, dict):
        return f"normal prior with variance {variance:g}"
    flat = [trait for trait in traits if variance.get(trait) is None]
    if len(traits) == 1 and not flat:
        return f"normal prior with variance {variance[traits[0]]:g}"
    of = listed([f"{v:g} for {trait}" for trait, v in variance.items() if v is not None])
    return f"normal prior with variance {of}" + (f"; flat for {listed(flat)}" if flat else "")


def prior_words(prior: dict | str | None) -> str:
    """Describe the prior of a covariance matrix: flat, or its section."""
    return find_prior(prior).describe(prior) if isinstance(prior, dict) else FLAT.describe({})
