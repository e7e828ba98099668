"""The options of `mmgibbs simulate` that add genotypes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.options import AT_LEAST_ONE, NumberRange
from mmgibbs.simulation.genome import Genome

QTL = 300
_DEFAULTS = {field.name: field.default for field in fields(Genome)}
# Beside --snps; None or False where not given.
OPTIONS = ("qtl", "qtl_share", "hide_qtl", "chromosomes", "genotyped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--snps and what goes with it."""
    share, chromosomes = _DEFAULTS["qtl_share"], _DEFAULTS["chromosomes"]
    parser.add_argument(
        "--snps",
        type=AT_LEAST_ONE,
        metavar="N",
        help="also simulate genotypes at this number of SNPs (2 bits for each animal and SNP)",
    )
    parser.add_argument(
        "--qtl", type=AT_LEAST_ONE, metavar="N", help=f"with --snps: number of loci with effects (default: {QTL})"
    )
    parser.add_argument(
        "--qtl-share",
        type=NumberRange(above=0, high=1),
        metavar="SHARE",
        help=f"with --snps: share of the genetic variance that QTL explain; the rest is polygenic (default: {share:g})",
    )
    parser.add_argument("--hide-qtl", action="store_true", help="with --snps: leave the QTL out of the file")
    parser.add_argument(
        "--chromosomes",
        type=AT_LEAST_ONE,
        metavar="N",
        help=f"with --snps: number of chromosomes, of one Morgan each (default: {chromosomes})",
    )
    parser.add_argument(
        "--genotyped",
        type=NumberRange(0, is_whole=True),
        metavar="N",
        help="with --snps: write genotypes of the youngest N animals (default: of all)",
    )


def read_genome_options(options: Mapping[str, Any], traits: str) -> Genome | None:
    """The genome that the options ask for, None without snps. ConfigError for those that need it, and for other
    traits.
    """
    given = _given(options)
    if options["snps"] is None:
        if given:
            raise ConfigError(
                f"{option_name(next(iter(given)))}: found without {option_name('snps')}, needed {option('snps', 'N')}"
            )
        return None
    if traits != "weights":
        raise ConfigError(
            f"{option_name('snps')} cannot be combined with {option('traits', traits)}; needed "
            f"{option('traits', 'weights')}"
        )
    return Genome(options["snps"], **({"qtl": QTL} | {key: v for key, v in given.items() if key != "genotyped"}))


def as_written(options: Mapping[str, Any]) -> str:
    """' --snps 1000 --qtl 20', for the note beside the data; '' without snps."""
    if options["snps"] is None:
        return ""
    written = {"snps": options["snps"], "qtl": QTL} | _given(options)
    return "".join(
        f" --{key.replace('_', '-')}" + ("" if value is True else f" {value}") for key, value in written.items()
    )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in OPTIONS if options[key] is not None and options[key] is not False}
