"""`mmgibbs contributions`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import (
    AT_LEAST_ONE,
    COUNT,
    NumberRange,
    add_genotypes,
    add_no_report,
    add_output,
    add_overwrite,
    add_quiet,
    collect_arguments,
    describe,
    read_genotypes,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Plan matings: the contributions of candidates with the highest mean breeding value at a limit of coancestry, "
        "and a list of matings with the least inbreeding of the progeny. You get the frontier of gain and coancestry, "
        "and, if the run has kept draws of the breeding values of the candidates (output.save_levels), how certain "
        "each contribution is and a robust plan.",
        "CANDIDATES is a table with the columns id and sex (M or F; none with --monoecious), and perhaps min and max, "
        "the least and most matings of each: for semen that is bought already, min.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of a finished run")
    parser.add_argument("candidates", metavar="CANDIDATES", help="table of the candidates: id, sex, min, max")
    parser.add_argument("--matings", type=AT_LEAST_ONE, required=True, metavar="N", help="number of matings to plan")
    add_output(parser, "the folder to write (default: the name of the run folder with -contributions added)")
    parser.add_argument(
        "--rate",
        type=NumberRange(-1, 1),
        metavar="X",
        help="increase of mean coancestry over equal contributions, of what is left to 1 (default: 0.01)",
    )
    parser.add_argument(
        "--coancestry", type=NumberRange(0, 1), metavar="X", help="highest mean coancestry, in place of --rate"
    )
    parser.add_argument("--trait", metavar="NAME", help="trait whose breeding values count (default: the only one)")
    parser.add_argument(
        "--index",
        metavar="TRAIT=W,...",
        help="several traits and what one unit of each is worth, such as milk=1,fat=-2",
    )
    parser.add_argument("--max-males", type=AT_LEAST_ONE, metavar="N", help="most matings of a male (default: all)")
    parser.add_argument("--max-females", type=AT_LEAST_ONE, metavar="N", help="most matings of a female (default: all)")
    parser.add_argument(
        "--monoecious",
        action="store_true",
        help="each candidate may be either parent, also both, as plants and lines of a crop: CANDIDATES has no sex",
    )
    parser.add_argument(
        "--mated", metavar="FILE", help="table of the matings that are made already: sire, dam and perhaps matings"
    )
    parser.add_argument(
        "--genotypes", metavar="FILE", help="genotypes of the candidates, for genomic coancestry (default: pedigree)"
    )
    parser.add_argument(
        "--draws",
        type=COUNT,
        default=200,
        metavar="N",
        help="most draws to optimise; 0: none (default: 200)",
    )
    parser.add_argument(
        "--worst", type=NumberRange(0.001, 1), default=0.2, metavar="X",
        help="share of the draws whose mean gain the robust plan maximises, those with the lowest (default: 0.2)",
    )  # fmt: skip
    add_genotypes(parser)
    add_overwrite(parser, "replace existing contributions")
    add_quiet(parser)
    add_no_report(parser, "do not write contributions.html")


def main(args: argparse.Namespace) -> None:
    from mmgibbs.machine.output_places import name_results_folder
    from mmgibbs.population.contributions.candidates import Matings
    from mmgibbs.population.contributions.results import describe_plans, fact_lines
    from mmgibbs.population.contributions.run import optimise_contributions
    from mmgibbs.report.render import can_write_page, print_notes

    how = collect_arguments(optimise_contributions, args) | {
        "output": args.output or name_results_folder(args.run, "contributions"),
        "matings": Matings(**collect_arguments(Matings, args)),
        "index": None if args.index is None else _read_index(args.index),
        "genotypes": read_genotypes(args, args.genotypes),
        "report": not args.no_report and can_write_page("contributions.html"),
    }
    made = optimise_contributions(**how)
    print_notes(made.notes, args.quiet)
    lines = fact_lines(made.facts)
    width = max(len(name) for name, _ in lines)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in lines))
    print("\n".join(describe_plans(made)))
    print(f"written to {made.directory}")


def _read_index(text: str) -> dict[str, float]:
    """{'milk': 1.0} of 'milk=1'."""
    from mmgibbs.errors import ConfigError
    from mmgibbs.pedigree.spelling import parse_number
    from mmgibbs.pedigree.tables import quoted

    weights: dict[str, float] = {}
    for part in text.split(","):
        trait, sign, weight = part.rpartition("=")
        number = parse_number(weight.strip(), ".")
        if not sign or number is None:
            raise ConfigError(f"contributions: --index: expected TRAIT=WEIGHT,..., got {quoted(part)}")
        if trait.strip() in weights:
            raise ConfigError(f"contributions: --index: found two weights of {quoted(trait.strip())}, needed one")
        weights[trait.strip()] = number
    return weights


COMMANDS = {"contributions": (add_arguments, main)}
