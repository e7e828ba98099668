"""The options of `mmgibbs simulate` that add genotypes."""

from __future__ import annotations

import argparse
from dataclasses import fields

from mmgibbs.errors import ConfigError
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
        type=int,
        metavar="N",
        help="also simulate genotypes at this number of SNPs (2 bits for each animal and SNP)",
    )
    parser.add_argument(
        "--qtl", type=int, metavar="N", help=f"with --snps: number of loci with effects (default: {QTL})"
    )
    parser.add_argument(
        "--qtl-share",
        type=float,
        metavar="SHARE",
        help=f"with --snps: share of the genetic variance that QTL explain; the rest is polygenic (default: {share:g})",
    )
    parser.add_argument("--hide-qtl", action="store_true", help="with --snps: leave the QTL out of the file")
    parser.add_argument(
        "--chromosomes",
        type=int,
        metavar="N",
        help=f"with --snps: number of chromosomes, of one Morgan each (default: {chromosomes})",
    )
    parser.add_argument(
        "--genotyped",
        type=int,
        metavar="N",
        help="with --snps: write genotypes of the youngest N animals (default: of all)",
    )


def genome_of(args: argparse.Namespace, traits: str) -> Genome | None:
    """What the options ask for, None without --snps. ConfigError for those that need it, and for other traits."""
    given = _given(args)
    if args.snps is None:
        if given:
            raise ConfigError(f"{_flag(next(iter(given)))}: found without --snps, needed --snps N")
        return None
    if traits != "weights":
        raise ConfigError(f"--snps cannot be combined with --traits {traits}; needed --traits weights")
    return Genome(args.snps, **({"qtl": QTL} | {key: v for key, v in given.items() if key != "genotyped"}))


def as_written(args: argparse.Namespace) -> str:
    """' --snps 1000 --qtl 20', for the note beside the data; '' without --snps."""
    if args.snps is None:
        return ""
    found = {"snps": args.snps, "qtl": QTL} | _given(args)
    return "".join(f" {_flag(key)}" + ("" if value is True else f" {value}") for key, value in found.items())


def _given(args: argparse.Namespace) -> dict:
    return {key: getattr(args, key) for key in OPTIONS if getattr(args, key) not in (None, False)}


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"
