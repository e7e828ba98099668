"""`mmgibbs pedigree`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import (
    NumberRange,
    add_encoding,
    add_escape_formulas,
    add_no_report,
    add_output,
    add_overwrite,
    add_unknown_parents,
    collect_arguments,
    describe,
    read_column,
    read_unknown_parents,
)

COLUMNS = ("id", "sire", "dam", "birth")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Describe a pedigree: how complete it is, inbreeding, effective population size, founders and major "
        "ancestors, generation intervals. The figures are those of a reference population: the animals of the last "
        "generation interval, or without births those that have no progeny. With genotypes of some animals, parents "
        "are checked and likely ones are looked for.",
    )
    parser.add_argument("file", metavar="FILE", help="table of animals with their sires and dams")
    add_output(parser, "also write tables and the page pedigree.html into this folder")
    parser.add_argument(
        "--born-after",
        type=NumberRange(is_whole=True),
        metavar="YEAR",
        help="the reference population are the animals born after this year",
    )
    for name in COLUMNS:
        parser.add_argument(
            f"--{name}", metavar="COLUMN", help=f"column of the {name}, its name or number (default: recognised)"
        )
    add_unknown_parents(parser)
    add_encoding(parser, "--encoding", "the table")
    parser.add_argument(
        "--genotypes",
        metavar="FILE",
        help="genotypes of some of the animals: conflicts of parents and progeny, likely parents, duplicates",
    )
    parser.add_argument(
        "--error-rate",
        type=NumberRange(0, below=0.25),
        default=0.01,
        metavar="X",
        help="highest probability that a genotype is wrong, which says how many opposing homozygotes a parent may have "
        "(default: 0.01)",
    )
    add_overwrite(parser, "replace an existing description")
    add_no_report(parser, "do not write pedigree.html")
    add_escape_formulas(parser)


def main(args: argparse.Namespace) -> None:
    from mmgibbs.population.facts import describe_pedigree
    from mmgibbs.population.results import describe_facts
    from mmgibbs.report.render import can_write_page, print_notes

    named = {name: getattr(args, name) for name in COLUMNS if getattr(args, name) is not None}
    columns = {name: read_column(value) for name, value in named.items()}
    has_page = args.output is not None and not args.no_report and can_write_page("pedigree.html")
    how = collect_arguments(describe_pedigree, args) | read_unknown_parents(args)
    described = describe_pedigree(args.file, **how | {"columns": columns or None, "report": has_page})
    print_notes(described.notes)
    print("\n".join(describe_facts(described.facts, described.ancestors)))
    if described.directory is not None:
        print(f"written to {described.directory}")


COMMANDS = {"pedigree": (add_arguments, main)}
