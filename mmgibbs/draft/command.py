"""`mmgibbs init`: its options, and what it prints."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from mmgibbs.options import (
    BAD_INPUT,
    add_encoding,
    add_output,
    add_overwrite,
    add_unknown_parents,
    collect_arguments,
    read_unknown_parents,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("phenotypes", help="the table of records: csv, tsv, white-space separated, parquet or arrow")
    parser.add_argument("--pedigree", metavar="FILE", help="the table of animals with their sires and dams")
    parser.add_argument("--genotypes", metavar="FILE", help="the file of genotypes, in any format of data.genotypes")
    for option, table in (("--widths", "records"), ("--pedigree-widths", "pedigree")):
        parser.add_argument(
            option,
            metavar="N,N,...",
            help=f"widths of the columns of the {table} in characters, where they are fixed",
        )
    for option, table in (("--encoding", "the records"), ("--pedigree-encoding", "the pedigree")):
        add_encoding(parser, option, table)
    parser.add_argument(
        "--traits", metavar="A,B,...", help="columns to analyse, with commas between them (default: guessed)"
    )
    parser.add_argument(
        "--formula",
        metavar="TEXT",
        help="the model in the grammar of lme4, 'weight ~ sex + (1 | animal)', in place of a guess",
    )
    parser.add_argument(
        "--family",
        metavar="TYPE",
        help="with --formula, the type of its traits: normal, binary, ordinal or count; of some of several, "
        "TRAIT=TYPE,TRAIT=TYPE",
    )
    parser.add_argument("--weights", metavar="COLUMN", help="with --formula, the column of the weights of the records")
    add_unknown_parents(parser, ", and codes such as . and -9 that are parents without a row")
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="with --formula, look at the columns alone: quicker for large tables, which the run then check",
    )
    add_output(parser, "the file to write (default: %(default)s)", "YAML", "analysis.yaml")
    add_overwrite(parser, "replace an analysis that mmgibbs init or import-blupf90 wrote")


def main(args: argparse.Namespace) -> int:
    """BAD_INPUT if the file cannot be used with the tables yet."""
    from mmgibbs.draft.make import init

    how = {
        "traits": tuple(name.strip() for name in (args.traits or "").split(",") if name.strip()),
        "family": _family(args.family),
        "data": _read_data(args),
    }
    made = init(**collect_arguments(init, args) | how)
    for line in made.said:
        print(line, file=sys.stderr if line.startswith(("warning: ", "note: ")) else sys.stdout)
    print(f"\nwritten to {made.path}")
    path = shlex.quote(str(made.path))
    if made.refused is not None:
        print(f"it needs a change before it can run:\n{made.refused}", file=sys.stderr)
        print(f"next: change it, then mmgibbs check {path}", file=sys.stderr)
        return BAD_INPUT
    print(f"next: read it, then mmgibbs run {path}")
    return 0


def _family(text: str | None) -> str | dict[str, str] | None:
    """'count', or the types by trait of 'cases=count,weight=normal'."""
    if text is None or "=" not in text:
        return text
    from mmgibbs.errors import ConfigError, option_name

    parts = [part.rpartition("=") for part in text.split(",")]
    if not all(trait.strip() and family.strip() for trait, _, family in parts):
        raise ConfigError(f"init: {option_name('family')}: expected TRAIT=TYPE,TRAIT=TYPE, got '{text}'")
    return {trait.strip(): family.strip() for trait, _, family in parts}


def _read_data(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of the section `data` that are given."""
    stated = read_unknown_parents(args)
    groups = {"parents": stated["groups"], "column": args.group_column}
    data = {
        "widths": _widths(args.widths, "widths"),
        "pedigree_widths": _widths(args.pedigree_widths, "pedigree_widths"),
        "encoding": args.encoding,
        "pedigree_encoding": args.pedigree_encoding,
        "unknown_parent": stated.get("unknown"),
        "groups": {key: value for key, value in groups.items() if value} or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def _widths(text: str | None, name: str) -> tuple[int, ...] | None:
    """The numbers of '8,8,6'."""
    from mmgibbs.errors import ConfigError, option_name

    if text is None:
        return None
    numbers = [width.strip() for width in text.split(",")]
    if not all(width.isdecimal() and int(width) > 0 for width in numbers):
        raise ConfigError(f"init: {option_name(name)}: found '{text}', needed whole numbers such as 8,8,6")
    return tuple(map(int, numbers))


COMMANDS = {"init": (add_arguments, main)}
