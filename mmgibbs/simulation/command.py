"""`mmgibbs simulate`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.simulation.simulate import FILES, YEARS, check_directory, simulate_beef, write_beef


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `mmgibbs simulate`."""
    parser.add_argument("directory", help="where to write the data, e.g. data/beef")
    parser.add_argument("--animals", type=int, default=5000, help="animals in the pedigree (default: %(default)s)")
    parser.add_argument("--years", type=int, default=YEARS, help="years of calving (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same data (default: %(default)s)")
    parser.add_argument("--overwrite", action="store_true", help="write into a directory that holds files already")


def main(args: argparse.Namespace) -> int:
    """Write the data and say which command comes next. Raises ConfigError."""
    check_directory(args.directory, args.overwrite)
    beef = simulate_beef(args.animals, args.seed, args.years)
    how = f"mmgibbs simulate DIRECTORY --animals {args.animals} --years {args.years} --seed {args.seed}"
    target = write_beef(beef, args.directory, how, args.overwrite)
    print(f"{beef.n_animals:,} animals in {int(beef.herd.max()) + 1:,} herds, {beef.n_records:,} of them with records")
    for name in FILES:
        print(f"wrote {target / name}")
    print(f"next: mmgibbs run {target / 'analysis.yaml'}")
    return 0


COMMANDS = {"simulate": (add_arguments, main)}
