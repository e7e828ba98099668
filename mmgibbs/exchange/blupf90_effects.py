"""EFFECT, NESTED, RANDOM and OPTIONAL of a parameter file -> fixed effects, random terms and covariance matrices.

Covariance matrices of the BLUPF90 programs run effect (direct, maternal), coefficient, trait, over all traits; those
of an analysis effect, trait, coefficient. A trait that lacks the effect (position 0), or has variance 0, is left out:
effects without records or variance change no other solution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_genomic import single_step
from mmgibbs.exchange.blupf90_pedigree import enter_pedigree
from mmgibbs.exchange.blupf90_random_regression import Coefficients, read_coefficients
from mmgibbs.exchange.blupf90_read import Stated, StatedEffect
from mmgibbs.pedigree.tables import counted

DEFAULT_VARIANCE, DEFAULT_COVARIANCE = 1.0, 0.1  # renumf90's, where a matrix is not stated
DAM = {"level": "dam", "unknown_level": "omit"}


def fixed_effects(context: Context, number: int, effect: StatedEffect) -> dict[str, dict]:
    """name -> keys: one effect, or one for each column where the traits take theirs from different ones."""
    for keyword in sorted(set(effect.stated) - {"NESTED"}):
        raise context.refuse(
            effect.stated[keyword].line,
            f"{keyword}: found without RANDOM, needed RANDOM after the EFFECT of line {effect.line}",
        )
    within, form = (0,) * len(effect.positions), ""
    if "NESTED" in effect.stated:
        line, (within, form) = effect.stated["NESTED"].line, effect.stated["NESTED"].value
        if effect.kind == "cross":
            raise context.refuse(
                line, f"NESTED: found after a cross-classified effect (line {effect.line}), needed after EFFECT ... cov"
            )
        for t, (position, by) in enumerate(zip(effect.positions, within, strict=True), 1):
            if bool(position) != bool(by):
                raise context.refuse(
                    line,
                    f"NESTED: found {by} for trait {t} and {position} in EFFECT, needed positions for the same traits",
                )
        context.check(line, "NESTED", within)
    classes = effect.positions if effect.kind == "cross" else within
    _tell_of_levels(context, effect.line, classes, form or effect.form)
    sources = list(zip(effect.positions, within, strict=True))
    distinct = dict.fromkeys(source for source in sources if source[0])
    out = {}
    for position, by in distinct:
        keys = {"column": context.columns[position]} | ({"kind": "covariate"} if effect.kind == "cov" else {})
        keys |= {"by": context.columns[by]} if by else {}
        suffix = f"_col{position}" + (f"_by_col{by}" if by else "") if len(distinct) > 1 else ""
        out[f"effect{number}{suffix}"] = keys | _only(
            context, [t for t, source in enumerate(sources) if source == (position, by)]
        )
    return out


def _only(context: Context, traits: Sequence[int]) -> dict:
    """The key `traits`, where it is needed."""
    return {} if len(traits) == len(context.traits) else {"traits": [context.traits[t] for t in traits]}


def _tell_of_levels(context: Context, line: int, positions: Sequence[int], form: str) -> None:
    """Note where levels may differ from those of the BLUPF90 programs."""
    if form == "numer" and not any(text.startswith("numer:") for _, text in context.notes):
        context.note(line, "numer: levels are compared as text: 1, 01 and 1.0 are three levels")
    for position in sorted({p for p in positions if 0 < p <= len(context.data.names)}):
        zeros = int((context.values(position) == "0").sum())
        if zeros:
            context.note(
                line,
                f"{counted(zeros, 'record', 'has')} 0 in column {position}: a level like others here, but no level for "
                "the BLUPF90 programs",
            )


# ------------------------------------------------------------------------------------------------ random terms


def random_terms(
    context: Context, number: int, effect: StatedEffect, data: dict, random: dict, variances: dict
) -> None:
    """Enter the terms of an EFFECT with RANDOM, their matrices and its pedigree into the sections of the analysis."""
    stated, kind = effect.stated, effect.stated["RANDOM"].value
    line, sources = stated["RANDOM"].line, sorted({p for p in effect.positions if p})
    if effect.kind == "cov" or len(sources) > 1:
        got = "a covariate" if effect.kind == "cov" else f"positions {' and '.join(map(str, sources))}"
        needed = "one cross-classified column (or 0 for a trait)"
        raise context.refuse(line, f"RANDOM: found {got} in the EFFECT of line {effect.line}, needed {needed}")
    if "NESTED" in stated:
        raise context.refuse(stated["NESTED"].line, "NESTED: cannot be combined with RANDOM; needed one of them")
    optional = stated["OPTIONAL"].value if "OPTIONAL" in stated else ()
    if kind != "animal" and optional:
        raise context.refuse(
            stated["OPTIONAL"].line, f"OPTIONAL: found {' '.join(optional)} with RANDOM {kind}, needed RANDOM animal"
        )
    level = {"level": context.columns[sources[0]]}
    coefficients = read_coefficients(context, effect)
    _tell_of_levels(context, effect.line, sources if kind == "diagonal" else (), effect.form)

    def enter(name: str, keyword: str, effects: dict, relationship: dict | None = None) -> None:
        taken = name in random or (relationship is None and kind == "diagonal")
        name = f"{name}{number}" if taken else name
        random[name], variances[name] = _term(context, effect, keyword, effects, coefficients)
        random[name] = (relationship or {}) | random[name]

    if kind == "diagonal":
        enter("effect", "(CO)VARIANCES", {"": level})
        return
    enter_pedigree(context, effect, data)
    if kind == "sire":
        context.note(
            line,
            "RANDOM sire: sires are related by id, sire and dam of the pedigree, not by sire and maternal grandsire",
        )
        enter("sire", "(CO)VARIANCES", {"": level | {"unknown_level": "omit"}}, {"relationship": "pedigree"})
        return
    effects = {"direct": level} | ({"maternal": DAM} if "mat" in optional else {})
    enter("genetic", "(CO)VARIANCES", effects, single_step(context, effect, data))
    if "pe" in optional:
        enter("permanent_environment", "(CO)VARIANCES_PE", {"": level})
    if "mpe" in optional:
        enter("maternal_environment", "(CO)VARIANCES_MPE", {"": DAM})


def _term(
    context: Context, effect: StatedEffect, keyword: str, effects: dict, coefficients: Coefficients
) -> tuple[dict, list | float]:
    """(keys of a random term without its relationship, its covariance matrix)."""
    T, k = len(context.traits), coefficients.number
    matrix = _stated_matrix(context, effect, keyword, len(effects) * k * T)
    number = {(e, t, c): (e * k + c) * T + t for e in range(len(effects)) for t in range(T) for c in range(k)}
    absent = [n for (_, t, _), n in number.items() if not effect.positions[t]]
    zero = [n for n in number.values() if n not in absent and matrix.value[n, n] == 0.0]
    if np.any(matrix.value[zero]):
        raise context.refuse(matrix.line, f"{keyword}: found a covariance beside a variance of 0, needed 0")
    if np.any(np.delete(matrix.value[absent], absent, axis=1)):
        context.note(matrix.line, f"{keyword}: covariances with a trait that lacks the effect are not carried over")
    kept = [n for n in number.values() if n not in absent and n not in zero]
    entries = {}
    for e, (label, keys) in enumerate(effects.items()):
        having = [[number[e, t, c] in kept for c in range(k)] for t in range(T)]
        if any(any(h) != all(h) for h in having):
            raise context.refuse(
                matrix.line, f"{keyword}: found variances of 0 for some coefficients of a trait, needed all or none"
            )
        if any(map(any, having)):
            traits = _only(context, [t for t in range(T) if all(having[t])])
            entries[label or ("rr" if coefficients.keys else "")] = keys | coefficients.keys | traits
    if not entries:
        raise context.refuse(
            matrix.line, f"{keyword}: found no variance above 0, needed one for a trait that has the effect"
        )
    (*_, last) = entries.values()
    keys = last if len(entries) == 1 and not coefficients.keys else {"effects": entries}
    return keys, covariance_matrix(context, matrix, keyword, kept)


def _stated_matrix(context: Context, effect: StatedEffect, keyword: str, size: int) -> Stated:
    if keyword not in effect.stated:
        line = effect.stated["RANDOM"].line
        context.note(
            line,
            f"{keyword} is not stated: as in renumf90 {DEFAULT_VARIANCE:g}, and {DEFAULT_COVARIANCE:g} for covariances",
        )
        difference = DEFAULT_VARIANCE - DEFAULT_COVARIANCE
        return Stated(line, np.full((size, size), DEFAULT_COVARIANCE) + difference * np.eye(size))
    parts = [f"{len(context.traits)} trait{'s' * (len(context.traits) > 1)}"]
    if size > len(context.traits):
        parts.append("covariates" if "RR_POSITION" in effect.stated else "direct and maternal")
    _check_size(context, effect.stated[keyword], keyword, size, " x ".join(parts))
    return effect.stated[keyword]


def _check_size(context: Context, matrix: Stated, keyword: str, size: int, why: str) -> None:
    k = len(matrix.value)
    if k != size:
        raise context.refuse(matrix.line, f"{keyword}: found a {k} x {k} matrix, needed {size} x {size} ({why})")


def _units(divisor: np.ndarray) -> np.ndarray:
    """(k, k) what (co)variances are divided by: divisor (k,) on the diagonal exactly, its roots outside."""
    units = np.sqrt(np.outer(divisor, divisor))
    np.fill_diagonal(units, divisor)
    return units


def covariance_matrix(
    context: Context, matrix: Stated, keyword: str, kept: Sequence[int], size: int | None = None, why: str = ""
) -> list | float:
    """The rows and columns `kept`; a number where there is one. Refused where it is no covariance matrix."""
    if size is not None:
        _check_size(context, matrix, keyword, size, why)
    kept_matrix = matrix.value[np.ix_(kept, kept)]
    kept_matrix = (
        (kept_matrix + kept_matrix.T) / 2 / _units(context.divisor[np.asarray(kept, int) % len(context.traits)])
    )
    sd = np.sqrt(np.maximum(np.diag(kept_matrix), 0.0))
    if not sd.all() or np.linalg.eigvalsh(kept_matrix / np.outer(sd, sd))[0] <= 1e-12:
        got = "a variance that is not above 0" if not sd.all() else "correlations that cannot occur together"
        raise context.refuse(matrix.line, f"{keyword}: found {got}, needed a positive definite matrix")
    return float(kept_matrix[0, 0]) if len(kept_matrix) == 1 else kept_matrix.tolist()
