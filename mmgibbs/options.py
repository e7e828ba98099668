"""Options that several commands share: each is declared once, with what it does where a command does not say more."""

from __future__ import annotations

import argparse
import math
import reprlib
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from numbers import Integral, Real
from typing import Any, Protocol

from mmgibbs.errors import ConfigError
from mmgibbs.genotypes.formats import FORMATS

BAD_INPUT = 2  # the exit code where the input cannot be used
COLUMNS = 100  # of descriptions, which argparse does not wrap


@dataclass(frozen=True)
class NumberRange:
    """The numbers that an option takes, as `type` of its declaration: from `low` to `high`, or beyond and below them.

    above, below: bounds that are no values themselves. can_be_infinite: 'inf' means no limit.
    """

    low: float = -math.inf
    high: float = math.inf
    above: float | None = None
    below: float | None = None
    is_whole: bool = False
    can_be_infinite: bool = False

    def __call__(self, text: str) -> float:
        """Read a number. ArgumentTypeError where it is none, or not in the range."""
        try:
            value: float = int(text) if self.is_whole else float(text)
        except ValueError:
            value = math.nan
        if value not in self or "_" in text:  # Python's digit groups are no numbers of a command line
            raise argparse.ArgumentTypeError(f"expected {self.describe()}, got {text!r}")
        return value

    def __contains__(self, value: float) -> bool:
        is_finite = -math.inf < value < math.inf or (self.can_be_infinite and value == math.inf)
        is_between = self.low <= value <= self.high
        return (
            is_finite
            and is_between
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def check(self, place: str, value: Any) -> float:
        """Return a number from Python, where anything may come. ConfigError, at this place, for any other value."""
        is_number = isinstance(value, Integral if self.is_whole else Real) and not isinstance(value, bool)
        if not is_number or value not in self:
            raise ConfigError(f"{place}: expected {self.describe()}, got {reprlib.repr(value)}")
        return int(value) if self.is_whole else float(value)

    def describe(self) -> str:
        """'a whole number of 1 or more', 'a number from 0 to below 1'."""
        what = "a whole number" if self.is_whole else "a number"
        low = f"above {self.above:g}" if self.above is not None else f"from {self.low:g}"
        high = f"below {self.below:g}" if self.below is not None else f"{self.high:.10g}"
        if self.below is None and self.high == math.inf:
            if self.above is None and self.low == -math.inf:
                return what
            return f"{what} {low}" if self.above is not None else f"{what} of {self.low:g} or more"
        if self.above is None:
            return f"{what} {low} to {high}"
        return f"{what} {low} and {'' if self.below is not None else 'up to '}{high}"


POSITIVE, AT_LEAST_ONE, COUNT = NumberRange(above=0), NumberRange(1, is_whole=True), NumberRange(0, is_whole=True)
SEED = NumberRange(0, 2**32 - 1, is_whole=True)


class Parser(Protocol):
    """A parser, or a group of its options."""

    def add_argument(self, *names: str, **settings: Any) -> Any: ...


def collect_arguments(function: Callable[..., Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are given and are parameters of a function or a class, by name, as Python has them.

    `--quiet` is progress=False, `--no-report` report=False, and `--set` one of the overrides.
    """
    given = vars(args) | {NEGATED[name]: not value for name, value in vars(args).items() if name in NEGATED}
    given |= {"overrides": given.get("set")}
    return {name: given[name] for name in signature(function).parameters if given.get(name) is not None}


NEGATED = {"quiet": "progress", "no_report": "report", "no_check": "check"}


def describe(parser: argparse.ArgumentParser, *paragraphs: str) -> None:
    parser.description = "\n\n".join(textwrap.fill(text, COLUMNS) for text in paragraphs)


def add_output(parser: Parser, help: str, metavar: str = "DIR", default: str | None = None) -> None:
    parser.add_argument("--output", metavar=metavar, default=default, help=help)


def add_overwrite(parser: Parser, replaced: str) -> None:
    parser.add_argument("--overwrite", action="store_true", help=replaced)


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="use VALUE instead of what the file says, e.g. --set sampler.thin=5; null removes the key; "
        "may be repeated",
    )


def add_cluster(parser: argparse.ArgumentParser, help: str) -> None:
    """help: with {workers} in place of what an address may be."""
    workers = "the workers of a Dask scheduler, tcp://HOST:PORT, or on N workers of this machine, local:N,"
    parser.add_argument("--cluster", metavar="ADDRESS", help=help.format(workers=workers))


def add_quiet(parser: Parser, help: str = "print only warnings and errors") -> None:
    parser.add_argument("--quiet", action="store_true", help=help)


def add_verbose(parser: Parser) -> None:
    parser.add_argument("--verbose", action="store_true", help="print notes, every stage and all parameters too")


def add_no_report(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--no-report", action="store_true", help=help)


def add_escape_formulas(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="in csv files, put an apostrophe before text that a spreadsheet would take for a formula",
    )


def add_genotypes(parser: Parser) -> None:
    """Keys of `data.genotypes` for a file of genotypes that a command names."""
    *formats, last = FORMATS
    parser.add_argument("--format", help=f"{', '.join(formats)} or {last}, if the file does not show it")
    parser.add_argument("--map", metavar="FILE", help="file with the names of the SNPs, if the genotypes have none")
    parser.add_argument(
        "--animals", metavar="FILE", help="the .fam of a .bed or the .psam of a .pgen, if it has another name"
    )
    parser.add_argument(
        "--id", metavar="COLUMN", help="for a table: the column of the animals (default: the first, or IID)"
    )


def read_genotypes(args: argparse.Namespace, file: str | None) -> dict[str, Any] | None:
    """Return the keys of `data.genotypes` that are given, None without any."""
    keys = {"file": file} | {key: getattr(args, key) for key in GENOTYPE_OPTIONS}
    return {key: value for key, value in keys.items() if value is not None} or None


GENOTYPE_OPTIONS = ("format", "map", "animals", "id")


def add_unknown_parents(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Add the option for unknown parents; also: what else is taken for unknown by default."""
    parser.add_argument(
        "--unknown",
        metavar="A,B,...",
        help=f"values that mean an unknown parent, as in --unknown='-9,.' (default: empty, NA and 0{also})",
    )
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument(
        "--groups",
        metavar="A,B,...",
        help="names in the columns of sires and dams that are genetic groups (unknown-parent groups), not animals; * "
        "stands for any characters: --groups='UPG_*'",
    )
    groups.add_argument(
        "--group-column",
        metavar="COLUMN",
        help="column of the pedigree with the group of each animal's unknown parents",
    )


def read_unknown_parents(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments unknown (where given), groups and group_column."""
    given: dict[str, Any] = {
        "groups": () if args.groups is None else tuple(name.strip() for name in args.groups.split(",")),
        "group_column": read_column(args.group_column),
    }
    if args.unknown is not None:
        given["unknown"] = tuple(value.strip() for value in args.unknown.split(","))
    return given


def add_encoding(parser: Parser, name: str, table: str) -> None:
    parser.add_argument(
        name, metavar="NAME", help=f"encoding of {table}, such as cp850 (default: UTF-8, else Windows-1252)"
    )


def read_column(text: str | None) -> str | int | None:
    """A column by its name, or by its position from 1."""
    return int(text) if text is not None and text.isdigit() else text


def add_top(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--top", type=AT_LEAST_ONE, default=20, metavar="N", help=f"{help} (default: 20)")
