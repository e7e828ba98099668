"""`mmgibbs export` and `mmgibbs import-blupf90`: their options, and what they print."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from mmgibbs.exchange.export_formats import EXPORT_FORMATS
from mmgibbs.options import NumberRange, add_output, add_overwrite, describe


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write a finished run as the files of another program, as deregressed proofs, or its draws as a table.",
        *(f"Format {name}: {known.words}" for name, known in EXPORT_FORMATS.items()),
    )
    parser.add_argument("run", metavar="RUN", help="the folder of a finished run")
    parser.add_argument("--format", required=True, choices=[*EXPORT_FORMATS], help="what to write")
    parser.add_argument(
        "--unexplained", type=NumberRange(0, below=1), default=0.5, metavar="SHARE",
        help="deregressed: share of the genetic variance that markers of the second analysis do not explain, for the "
        "weights (default: 0.5)",
    )  # fmt: skip
    add_output(parser, "the folder to write to (default: RUN-FORMAT), not the folder of a run")
    add_overwrite(parser, "replace existing files")


def export(args: argparse.Namespace) -> None:
    known = EXPORT_FORMATS[args.format]
    module, _, function = known.writer.partition(":")
    write = getattr(import_module(f"mmgibbs.exchange.{module}"), function)
    options = {name: getattr(args, name) for name in known.options}
    written = write(args.run, args.output, overwrite=args.overwrite, **options)
    folder, notes = written if isinstance(written, tuple) else (written, [])
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"written to {folder}")


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parameters", metavar="FILE", help="the parameter file that renumf90 reads, such as renum.par")
    add_output(parser, "the analysis file to write (default: FILE with the ending .yaml)", "YAML")
    add_overwrite(parser, "replace the files of an earlier import")


def import_(args: argparse.Namespace) -> None:
    from mmgibbs.exchange.import_blupf90 import import_blupf90

    path, said = import_blupf90(args.parameters, args.output, overwrite=args.overwrite)
    print(
        "\n".join(
            [
                f"written to {path}; carried over in another way, or not carried over:"
                if said
                else f"written to {path}",
                *said,
            ]
        )
    )


COMMANDS = {"export": (add_export_arguments, export), "import-blupf90": (add_import_arguments, import_)}
