"""Benchmarks: measured figures from one run on one machine, as a table and as JSON. Run in a checkout:

python -m benchmarks engines               hybrid and structured side by side on three beef systems
python -m benchmarks choice CONFIG...      what engine: auto goes by: estimated and measured milliseconds of each engine
python -m benchmarks markers               effects of SNPs: milliseconds a sweep beside the bound of bytes
python -m benchmarks relationships         genomic relationships: seconds of G and its inverse, milliseconds a sweep
python -m benchmarks sweep --animals N     one sweep of the simulated beef system: seconds, bytes, resident memory
python -m benchmarks regressions           each regression in the setting of its paper, with the published numbers
python -m benchmarks files --animals N     the same system from files on disk to the end of its first sweep

`mmgibbs bench evaluation CONFIG` times the sweeps of an analysis file. The other files of this folder are scripts, each
with its command in its first lines.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from mmgibbs.errors import MmgibbsError, as_a_command
from mmgibbs.runs.bench.command import JSON_HELP, show_figures

_SIZES = (
    "systems of 5.1 M (small), 28.3 M (medium) and 51.4 M (large) equations, as on a poster of Golden, Lupo & Garrick, "
    "whose times are printed beside those measured"
)
_SEED = "of the simulated data (default: %(default)s)"
_FUNCTIONS = {
    "engines": ("benchmarks.engines", "bench_engines"),
    "regressions": ("benchmarks.regressions", "bench_regressions"),
    "markers": ("benchmarks.markers", "bench_markers"),
    "relationships": ("benchmarks.relationships", "bench_relationships"),
    "choice": ("benchmarks.choice", "bench_choice"),
    "sweep": ("benchmarks.systems", "bench_sweep"),
    "files": ("benchmarks.systems", "bench_files"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    p = kinds.add_parser("engines", help="seconds per sample of every engine on simulated beef systems of three sizes")
    p.add_argument(
        "--systems",
        nargs="+",
        choices=("small", "medium", "large"),
        default=["small"],
        help=f"{_SIZES} (default: small)",
    )
    p.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="share of the animals of each system, for smaller machines (default: 1)",
    )
    p.add_argument(
        "--sweeps",
        type=int,
        default=5,
        help="timed sweeps of each engine, in turn; medians are printed (default: %(default)s)",
    )
    help_text = (
        "sweeps with sampled variances, from which ESS per second is computed; 0: none (default: as many as fit into a "
        "minute, from 50 to 2,000)"
    )
    p.add_argument("--ess-sweeps", type=int, metavar="N", help=help_text)
    p.add_argument(
        "--engines",
        nargs="+",
        choices=("hybrid", "structured"),
        default=["hybrid", "structured"],
        help="default: both",
    )
    p.add_argument("--seed", type=int, default=1, help=_SEED)
    p = kinds.add_parser("regressions", help="each regression in the setting of its paper, with the published numbers")
    parts = ("horseshoe", "hmc", "lasso", "multinomial", "hierarchical")
    p.add_argument("--parts", nargs="+", choices=parts, default=list(parts), help="default: all")
    p.add_argument(
        "--data",
        metavar="DIR",
        help="folder with the data sets mnist and covertype_cover, for the settings that need them",
    )
    p.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    p.add_argument(
        "--scale", type=float, default=1.0, help="share of the rows of each setting, for smaller machines (default: 1)"
    )
    p.add_argument(
        "--grid",
        action="store_true",
        help="time gradient and leapfrog for 224 combinations of rows, classes and predictors instead",
    )
    p = kinds.add_parser(
        "choice", help="estimated and measured milliseconds of the engines among which engine: auto chooses"
    )
    p.add_argument("config", nargs="+", help="analysis files, e.g. configs/*.yaml")
    p.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a value of the analysis files"
    )
    for name, text in (
        ("sweep", "seconds per sweep of the simulated beef system"),
        ("files", "simulated beef system: seconds from csv files to the end of the first sweep"),
    ):
        p = kinds.add_parser(name, help=text)
        p.add_argument(
            "--animals",
            type=int,
            default=100_000,
            help="animals in the pedigree; 1100000 gives 4.7 M equations (default: %(default)s)",
        )
        p.add_argument("--seed", type=int, default=1, help=_SEED)
        p.add_argument(
            "--precision",
            choices=("single", "double"),
            default="single",
            help="of the equations (default: %(default)s)",
        )
        if name == "sweep":
            p.add_argument(
                "--sweeps", type=int, default=5, help="timed sweeps; the median is printed (default: %(default)s)"
            )
            p.add_argument(
                "--update",
                choices=("level", "site"),
                default="level",
                help="levels jointly, or one equation after another (default: %(default)s)",
            )
            p.add_argument(
                "--partition",
                choices=("term", "colour", "equal"),
                default="term",
                help="blocks of the equations; structured takes colours (default: %(default)s)",
            )
            p.add_argument(
                "--engine", choices=("serial", "structured", "hybrid"), default="serial", help="default: %(default)s"
            )
            p.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    p = kinds.add_parser(
        "markers", help="sweeps over SNP effects on simulated genotypes, with the least time that memory allows"
    )
    p.add_argument(
        "--sizes",
        nargs="+",
        metavar="ANIMALSxSNPS",
        default=["1814x10346", "10000x50000"],
        help="default: 1814x10346 10000x50000",
    )
    p.add_argument("--priors", nargs="+", choices=("rr", "bayes_r"), default=["rr", "bayes_r"], help="default: both")
    p.add_argument("--sweeps", type=int, default=50, help="timed; from 500 on ESS too (default: %(default)s)")
    p.add_argument("--burn-in", type=int, default=20, help="default: %(default)s")
    p.add_argument("--bandwidth", type=float, default=20.0, help="GB/s of memory (default: %(default)s)")
    p.add_argument("--precision", choices=("single", "double"), default="single", help="default: %(default)s")
    p.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    p.add_argument("--seed", type=int, default=1, help=_SEED)
    p = kinds.add_parser("relationships", help="G of simulated genotypes, its inverse, and sweeps that read it")
    p.add_argument("--sizes", nargs="+", metavar="ANIMALSxSNPS", default=["2000x10000"], help="default: 2000x10000")
    p.add_argument("--animals", type=int, help="single-step: pedigree of the simulated beef system, three traits")
    p.add_argument("--sweeps", type=int, default=20, help="timed; medians are printed (default: %(default)s)")
    p.add_argument("--threads", type=int, default=1, help="from 2 on the structured engine (default: %(default)s)")
    p.add_argument("--pcg", action="store_true", help="also solve by PCG to 1e-10")
    p.add_argument("--core", type=int, metavar="N", help="the inverse by a core of N animals (APY), as products")
    p.add_argument("--formed", action="store_true", help="with --core: form the whole inverse from it")
    p.add_argument("--bandwidth", type=float, default=20.0, help="GB/s of memory (default: %(default)s)")
    p.add_argument("--precision", choices=("single", "double"), default="double", help="default: %(default)s")
    p.add_argument("--seed", type=int, default=1, help=_SEED)
    for p in kinds.choices.values():
        p.add_argument("--json", metavar="FILE", help=JSON_HELP)


def main(arguments: list[str] | None = None) -> int:
    """Run one benchmark and return the exit code: 2 if its input cannot be used."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__, formatter_class=layout)
    add_arguments(parser)
    args = parser.parse_args(arguments)
    module, function = _FUNCTIONS[args.kind]
    with as_a_command():
        try:
            show_figures(getattr(import_module(module), function)(args), args.json)
        except MmgibbsError as error:
            print(error, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
