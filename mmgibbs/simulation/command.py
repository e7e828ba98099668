"""`mmgibbs simulate`: its options, and what it prints."""

from __future__ import annotations

import argparse
import math
import shlex

from mmgibbs.options import AT_LEAST_ONE, SEED, NumberRange, add_overwrite, collect_arguments
from mmgibbs.simulation import calving, disease, genome_options, trial
from mmgibbs.simulation.make import ANIMALS, KINDS, TRIAL, WEIGHTS, simulate
from mmgibbs.simulation.simulate import SELECTION, YEARS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `mmgibbs simulate`."""
    parser.add_argument("directory", help="where to write the data, e.g. data/beef")
    parser.add_argument(
        "--traits",
        choices=[WEIGHTS, *KINDS, TRIAL],
        default=WEIGHTS,
        help="weights: three weights of beef cattle, direct and maternal effects; calving_ease: scores and birth "
        "weight, direct and maternal effects; disease: pneumonia of calves, ill or well; longevity: productive life "
        "of cows, many of them still alive (right-censored); mastitis: cases within a lactation, over the months "
        "that the cow was observed; trial: yields of lines at several sites, in rows and columns "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--animals", type=AT_LEAST_ONE, help=f"number of animals in the pedigree (default: {ANIMALS:,}; not for trial)"
    )
    other_years = ", ".join(f"{years} for {name}" for name, (_, years, _) in KINDS.items())
    parser.add_argument(
        "--years", type=AT_LEAST_ONE, help=f"years of calving (default: {YEARS} for weights, {other_years})"
    )
    parser.add_argument("--seed", type=SEED, default=1, help="the same seed gives the same data (default: %(default)s)")
    parser.add_argument(
        "--lines", type=NumberRange(4, is_whole=True), help=f"for trial: number of lines (default: {trial.LINES})"
    )
    parser.add_argument("--sites", type=AT_LEAST_ONE, help=f"for trial: number of sites (default: {trial.SITES})")
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
        "--incidence",
        type=NumberRange(above=0, below=1),
        help=f"expected share of ill calves (default: {disease.INCIDENCE:g})",
    )
    parser.add_argument(
        "--selection",
        choices=SELECTION,
        help="for weights: the best young animals become parents, by their true breeding value of yearling weight, or "
        "by a record of it that is not in the data; with --snps alleles that increase it "
        "become common (default: any young animal)",
    )
    genome_options.add_arguments(parser)
    add_overwrite(parser, "replace data that an earlier simulation wrote, in a directory that may have other files")


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
    made = simulate(**collect_arguments(simulate, args) | {"snps": genome_options.read_genome(args)})
    print(made.text)
    for file in made.files:
        print(f"wrote {file}")
    print(f"next: mmgibbs run {shlex.quote(str(made.analysis))}")
    return 0


COMMANDS = {"simulate": (add_arguments, main)}
