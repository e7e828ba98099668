"""The options of `mmgibbs simulate` that add genotypes."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.options import AT_LEAST_ONE, NumberRange
from mmgibbs.simulation.genome import Genome

OPTIONS = ("qtl", "qtl_share", "hide_qtl", "chromosomes", "genotyped")  # beside --snps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--snps and what goes with it."""
    parser.add_argument(
        "--snps",
        type=AT_LEAST_ONE,
        metavar="N",
        help="also simulate genotypes at this number of SNPs (2 bits for each animal and SNP)",
    )
    parser.add_argument(
        "--qtl",
        type=AT_LEAST_ONE,
        metavar="N",
        help=f"with --snps: number of loci with effects (default: {Genome.qtl})",
    )
    parser.add_argument(
        "--qtl-share",
        type=NumberRange(above=0, high=1),
        metavar="SHARE",
        help="with --snps: share of the genetic variance that QTL explain; the rest is polygenic (default: "
        f"{Genome.qtl_share:g})",
    )
    parser.add_argument("--hide-qtl", action="store_true", help="with --snps: leave the QTL out of the file")
    parser.add_argument(
        "--chromosomes",
        type=AT_LEAST_ONE,
        metavar="N",
        help=f"with --snps: number of chromosomes, of one Morgan each (default: {Genome.chromosomes})",
    )
    parser.add_argument(
        "--genotyped",
        type=NumberRange(0, is_whole=True),
        metavar="N",
        help="with --snps: write genotypes of the youngest N animals (default: of all)",
    )


def read_genome(args: argparse.Namespace) -> Genome | None:
    """Return the genome that the options ask for, None without --snps. ConfigError for those that need it."""
    values = {key: getattr(args, key) for key in OPTIONS}
    given = {key: value for key, value in values.items() if value is not None and value is not False}
    if args.snps is not None:
        return Genome(args.snps, **given)
    if given:
        raise ConfigError(
            f"{option_name(next(iter(given)))}: found without {option_name('snps')}, needed {option('snps', 'N')}"
        )
    return None


def describe_options(genome: Genome) -> str:
    """' --snps 1000 --qtl 20', for the note beside the data; fields without an option as Python has them."""
    written = {key: getattr(genome, key) for key in OPTIONS if getattr(genome, key) != getattr(Genome, key)}
    written = {"snps": genome.snps, "qtl": genome.qtl} | written
    others = {
        key: value for key, value in asdict(genome).items() if key not in written and value != getattr(Genome, key)
    }
    options = [f" --{key.replace('_', '-')}" + ("" if value is True else f" {value}") for key, value in written.items()]
    in_python = ", ".join(f"{key}={value}" for key, value in others.items())
    return "".join(options) + (f", and in Python Genome(..., {in_python})" if others else "")
