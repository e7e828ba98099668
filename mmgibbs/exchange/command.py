"""`mmgibbs export` and `mmgibbs import-blupf90`: their options, and what they print."""

from __future__ import annotations

import argparse
import sys

from mmgibbs.options import NumberRange, add_output, add_overwrite, describe


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write a finished run as the files of another program, as deregressed proofs, or its draws as a table.",
        "Format blupf90: `solutions` (trait, effect, level, solution, s.e., which is the posterior standard deviation, "
        "left out if it is unknown); `levels.csv` (effect, level, id, term, name: what the numbers of effects and "
        "levels mean); and, if variances were sampled, `postgibbs_samples` (number, round, how many, the "
        "(co)variances; one chain after another, with rounds numbered on) and `postind` (the position of each "
        "(co)variance in a sample).",
        "Format deregressed: `deregressed.csv` and `.parquet` with the deregressed proof of each animal, the parent "
        "average removed, its reliability and its weight (Garrick, Taylor & Fernando 2009), for a second analysis such "
        "as one by SNPs. Animals without information beyond their parents are left out and counted.",
        "Format draws: `draws.csv` and `.parquet` with a row for each kept draw of each chain (chain, draw, and a "
        "column for each parameter), for programs that do not read draws.nc.",
    )
    parser.add_argument("run", metavar="RUN", help="the folder of a finished run")
    parser.add_argument("--format", required=True, choices=["blupf90", "deregressed", "draws"], help="what to write")
    parser.add_argument(
        "--unexplained", type=NumberRange(0, below=1), default=0.5, metavar="SHARE",
        help="deregressed: share of the genetic variance that markers of the second analysis do not explain, for the "
        "weights (default: 0.5)",
    )  # fmt: skip
    add_output(parser, "the folder to write to (default: RUN-FORMAT), not the folder of a run")
    add_overwrite(parser, "replace existing files")


def export(args: argparse.Namespace) -> None:
    if args.format == "deregressed":
        from mmgibbs.exchange.deregression import export_deregressed

        folder, notes = export_deregressed(
            args.run, args.output, unexplained=args.unexplained, overwrite=args.overwrite
        )
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
        print(f"written to {folder}")
        return
    if args.format == "draws":
        from mmgibbs.exchange.draws_write import export_draws

        print(f"written to {export_draws(args.run, args.output, overwrite=args.overwrite)}")
        return
    from mmgibbs.exchange.blupf90_write import export_blupf90

    print(f"written to {export_blupf90(args.run, args.output, overwrite=args.overwrite)}")


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
