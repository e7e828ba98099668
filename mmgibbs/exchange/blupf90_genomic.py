"""SNP_FILE of a renumf90 parameter file, and the options of preGSf90 that say what is made of it.

preGSf90 removes SNPs and animals (minor allele frequency 0.05, call rates 0.9), makes G of VanRaden (2008) with the
frequencies of the genotyped, blends it with A22 (AlphaBeta 0.95 0.05), tunes it (tunedG 2) and adds
tau G^-1 - omega A22^-1 to A^-1. The analysis says each of these; an option without a counterpart is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmgibbs.exchange.blupf90_context import Context
from mmgibbs.exchange.blupf90_read import Stated, StatedEffect

TUNED = {"0": "none", "1": "unit", "2": "A22", "3": "mean", "4": "fst"}  # OPTION tunedG
METHODS = {"1": "vanraden1", "2": "vanraden2"}  # OPTION whichG
FREQUENCIES = {"1": "half", "2": "genotyped"}  # OPTION whichfreq
QUALITY = {"maf": 0.05, "call_rate": 0.9, "animal_call_rate": 0.9}
SHARES = {"minfreq": "maf", "callrate": "call_rate", "callrateAnim": "animal_call_rate"}
HERE = {"apy": "the key core of the relationship", "FreqFile": "the key frequencies of the relationship"}
NONE = {"maf": 0, "call_rate": 0, "animal_call_rate": 0, "monomorphic": "keep", "parent_progeny": "ignore"}


def single_step(context: Context, effect: StatedEffect, data: dict[str, Any]) -> dict[str, Any]:
    """The relationship of an animal effect: of the pedigree, or with its SNP_FILE, which enters `data`."""
    if "SNP_FILE" not in effect.stated:
        return {"relationship": "pedigree"}
    stated = effect.stated["SNP_FILE"]
    if "groups" in data:
        context.note(
            stated.line,
            "SNP_FILE: genotypes are not used: single-step relationships have no unknown-parent groups here, so that "
            "relationships are those of the pedigree alone",
        )
        return {"relationship": "pedigree"}
    if not (context.parameters.path.parent / stated.value).is_file():
        raise context.refuse(stated.line, f"SNP_FILE: found {stated.value}, which is no file")
    genotypes: dict[str, Any] = {"file": context.path(stated.value), "format": "blupf90", "quality": dict(QUALITY)}
    relationship: dict[str, Any] = {"kind": "single_step", "blend": 0.05, "with": "A22", "tune": "A22"}
    for option in context.parameters.options:
        reader = OPTIONS.get(option.value[0])
        if reader is not None:
            reader(context, option, genotypes, relationship)
    context.note(
        stated.line,
        "SNP_FILE: single-step relationships; quality control is that of preGSf90 by its options (their defaults: "
        "minor allele frequency 0.05, call rates 0.9)",
    )
    data["genotypes"] = genotypes
    return {"relationship": relationship}


Reader = Callable[[Context, Stated, dict[str, Any], dict[str, Any]], None]


def _number(context: Context, option: Stated, at: int) -> float:
    name = option.value[0]
    try:
        return float(option.value[at])
    except IndexError:
        raise context.refuse(option.line, f"OPTION {name}: found {len(option.value) - 1} values, needed {at}") from None
    except ValueError:
        raise context.refuse(option.line, f"OPTION {name}: found {option.value[at]}, needed a number") from None


def _choice(context: Context, option: Stated, choices: dict[str, str]) -> str:
    got = option.value[1] if len(option.value) > 1 else "nothing"
    if got not in choices:
        words = ", ".join(f"{key} ({word})" for key, word in choices.items())
        raise context.refuse(option.line, f"OPTION {option.value[0]}: found {got}, needed one of {words}")
    return choices[got]


def _blend(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    alpha, beta = _number(context, option, 1), _number(context, option, 2)
    if not (0 <= beta <= 1 and abs(alpha + beta - 1) < 1e-9):
        raise context.refuse(
            option.line, f"OPTION AlphaBeta: found {alpha:g} and {beta:g}, needed shares of 0 or more that add up to 1"
        )
    relationship["blend"] = beta


def _weights(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    relationship |= {"tau": _number(context, option, 1), "omega": _number(context, option, 2)}


def _tune(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    relationship["tune"] = _choice(context, option, TUNED)


def _method(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    relationship["method"] = _choice(context, option, METHODS)


def _frequency(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    relationship["frequencies"] = _choice(context, option, FREQUENCIES)


def _share(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    genotypes["quality"][SHARES[option.value[0]]] = _number(context, option, 1)


def _no_quality_control(
    context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]
) -> None:
    genotypes["quality"] = dict(NONE)


def _refused(context: Context, option: Stated, genotypes: dict[str, Any], relationship: dict[str, Any]) -> None:
    equivalent = HERE.get(option.value[0])
    why = (
        f"not carried over; here it is {equivalent}" if equivalent else "this program has no such genomic relationships"
    )
    raise context.refuse(
        option.line,
        f"OPTION {' '.join(option.value)}: {why}; needed a file without it (there are "
        f"{', '.join(name for name, reader in OPTIONS.items() if reader != _refused)})",
    )


OPTIONS: dict[str, Reader] = {
    "AlphaBeta": _blend,
    "TauOmega": _weights,
    "tunedG": _tune,
    "whichG": _method,
    "whichfreq": _frequency,
    **dict.fromkeys(SHARES, _share),
    "no_quality_control": _no_quality_control,
    **dict.fromkeys(
        ("GammaDelta", "FreqFile", "weightedG", "apy", "whichH", "whichScale", "excludeCHR", "includeCHR", "H_UPG"),
        _refused,
    ),
}
