"""`mmgibbs simulate`: its options, and what it prints."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Callable
from pathlib import Path

from mmgibbs.config.schema import FILE as SCHEMA
from mmgibbs.config.schema import with_schema
from mmgibbs.errors import ConfigError
from mmgibbs.simulation import calving, disease, files, genome_options, longevity, mastitis
from mmgibbs.simulation.genotypes import FILES as OF_GENOTYPES
from mmgibbs.simulation.simulate import FILES, SELECTION, YEARS, check_directory, simulate_beef, write_beef

# What may be simulated beside weights: its function, its years and the options of its own.
KINDS: dict[str, tuple[Callable[..., files.Simulated], int, tuple[str, ...]]] = {
    "calving_ease": (calving.simulate_calving, calving.YEARS, ("categories", "shares")),
    "disease": (disease.simulate_disease, disease.YEARS, ("incidence",)),
    "longevity": (longevity.simulate_longevity, longevity.YEARS, ()),
    "mastitis": (mastitis.simulate_mastitis, mastitis.YEARS, ()),
}
OPTIONS = ("categories", "shares", "incidence")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `mmgibbs simulate`."""
    parser.add_argument("directory", help="where to write the data, e.g. data/beef")
    parser.add_argument(
        "--traits",
        choices=["weights", *KINDS],
        default="weights",
        help="weights: three weights of beef cattle, direct and maternal effects; calving_ease: scores and birth "
        "weight, direct and maternal effects; disease: pneumonia of calves, ill or well; longevity: productive life "
        "of cows, many of them still alive (right-censored); mastitis: cases within a lactation, over the months "
        "that the cow was observed (default: %(default)s)",
    )
    parser.add_argument(
        "--animals", type=int, default=5000, help="number of animals in the pedigree (default: %(default)s)"
    )
    own = ", ".join(f"{years} for {name}" for name, (_, years, _) in KINDS.items())
    parser.add_argument("--years", type=int, help=f"years of calving (default: {YEARS} for weights, {own})")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same data (default: %(default)s)")
    parser.add_argument(
        "--categories",
        type=_words,
        metavar="A,B,...",
        help=f"for calving_ease, from low to high: names or numbers (default: {','.join(calving.CATEGORIES)})",
    )
    parser.add_argument(
        "--shares",
        type=_numbers,
        metavar="P,P,...",
        help="expected share of each category, which sets the thresholds "
        f"(default: {','.join(map(str, calving.SHARES))})",
    )
    parser.add_argument(
        "--incidence", type=float, help=f"expected share of ill calves (default: {disease.INCIDENCE:g})"
    )
    parser.add_argument(
        "--selection",
        choices=SELECTION,
        help="for weights: the best young animals become parents, by their true breeding value of yearling weight, or "
        "by a record of it that is not in the data; with --snps alleles that increase it "
        "become common (default: any young animal)",
    )
    genome_options.add_arguments(parser)
    parser.add_argument("--overwrite", action="store_true", help="write into a directory that already has files")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise argparse.ArgumentTypeError(f"found {text!r}, needed numbers with commas between them: 0.7,0.2,0.1")
    return numbers


def main(args: argparse.Namespace) -> int:
    """Write the data and say which command comes next. Raises ConfigError."""
    check_directory(args.directory, args.overwrite)
    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    for name in given:
        if args.traits == "weights" or name not in KINDS[args.traits][2]:
            of = next(kind for kind, (_, _, options) in KINDS.items() if name in options)
            raise ConfigError(f"--{name} cannot be combined with --traits {args.traits}; needed --traits {of}")
    target, lines, names = _beef(args) if args.traits == "weights" else _other(args, given)
    with_schema(target / "analysis.yaml")
    print(lines)
    for file in (*names, SCHEMA):
        print(f"wrote {target / file}")
    print(f"next: mmgibbs run {shlex.quote(str(target / 'analysis.yaml'))}")
    return 0


def _beef(args: argparse.Namespace) -> tuple[Path, str, tuple[str, ...]]:
    years = YEARS if args.years is None else args.years
    genome = genome_options.genome_of(args, args.traits)
    beef = simulate_beef(args.animals, args.seed, years, genome, args.genotyped or 0, args.selection)
    how = f"mmgibbs simulate DIRECTORY --animals {args.animals} --years {years} --seed {args.seed}"
    how += "" if args.selection is None else f" --selection {args.selection}"
    how += genome_options.as_written(args)
    target = write_beef(beef, args.directory, how, args.overwrite)
    n_herds = int(beef.herd.max()) + 1
    said = f"{beef.n_animals:,} animals in {n_herds:,} herds, {beef.n_records:,} of them with records"
    return target, said, FILES if genome is None else FILES + OF_GENOTYPES


def _other(args: argparse.Namespace, given: dict) -> tuple[Path, str, tuple[str, ...]]:
    genome_options.genome_of(args, args.traits)  # refuses what needs weights
    if args.selection is not None:
        raise ConfigError(f"--selection cannot be combined with --traits {args.traits}; needed --traits weights")
    simulate, own_years, _ = KINDS[args.traits]
    years = own_years if args.years is None else args.years
    simulated = simulate(args.animals, args.seed, years, **given)
    how = (
        f"mmgibbs simulate DIRECTORY --traits {args.traits} --animals {args.animals} --years {years} --seed {args.seed}"
    )
    for name, value in given.items():
        how += f" --{name} {shlex.quote(_shown(value))}"
    target = files.write(simulated, args.directory, how, args.overwrite)
    herd = simulated.herd
    n_herds = int(herd.herd.max()) + 1
    return target, f"{herd.n_animals:,} animals in {n_herds:,} herds, {simulated.animal.size:,} records", files.FILES


def _shown(value: float | tuple) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


COMMANDS = {"simulate": (add_arguments, main)}
