"""`mmgibbs gwas`: its options, and what it prints."""

from __future__ import annotations

import argparse

from mmgibbs.options import (
    AT_LEAST_ONE,
    POSITIVE,
    SEED,
    NumberRange,
    add_genotypes,
    add_no_report,
    add_output,
    add_overwrite,
    add_quiet,
    add_set,
    collect_arguments,
    describe,
    read_genotypes,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Test every SNP in the whole mixed model of a finished run, at its variances: repeated records, weights, "
        "permanent environments, maternal effects, residual classes. Traits are normal, and the run (REML, BLUP or "
        "Gibbs) has no SNP effects of its own. You get the effect of one copy of the counted allele with its standard "
        "error and p value, false discovery rates, and a genome-wide threshold from the effective number of tests; of "
        "several traits also a joint test.",
        "The data of the run are read again, and must not have changed. Tests are exact if the estimated time, which "
        "is printed first, is below --exact-limit. Otherwise standard errors are calibrated by 100 SNPs, and tests "
        "with p < 1e-5 are computed exactly.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "genotypes", metavar="FILE", nargs="?", help="the genotypes (default: those of the run, data.genotypes)"
    )
    add_output(parser, "the folder to write (default: the name of the run folder with -gwas added)")
    parser.add_argument(
        "--level",
        metavar="COLUMN",
        help="column of the records with the ids of the genotyped animals or lines (default: that of the first random "
        "effect with relationships)",
    )
    parser.add_argument(
        "--maf", type=NumberRange(0, 0.5), metavar="X",
        help="least minor allele frequency of SNPs that are tested, among the animals with records (default: that of "
        "the run if its genotypes are tested, else 0.01)",
    )  # fmt: skip
    parser.add_argument(
        "--call-rate", type=NumberRange(0, 1), metavar="X",
        help="least call rate of these SNPs (default: that of the run if its genotypes are tested, else 0.9)",
    )  # fmt: skip
    parser.add_argument(
        "--exact-limit",
        type=NumberRange(0, can_be_infinite=True),
        default=10.0,
        metavar="MINUTES",
        help="estimated time up to which all tests are exact (default: 10)",
    )
    parser.add_argument(
        "--seed", type=SEED, default=1, help="seed of the SNPs by which tests are calibrated (default: 1)"
    )
    parser.add_argument(
        "--loco",
        action="store_true",
        help="for genomic relationships: test the SNPs of each chromosome with relationships made without them",
    )
    windows = parser.add_mutually_exclusive_group()
    windows.add_argument(
        "--windows",
        metavar="SIZE",
        nargs="?",
        type=_read_window_size,
        const=True,
        help="test windows of neighbouring SNPs too, so wide in the unit of the map (without a number: 1,000,000 base "
        "pairs, 1 Mb or 1 cM)",
    )
    windows.add_argument("--window-snps", metavar="N", type=AT_LEAST_ONE, help="test windows of N SNPs each")
    _add_region_width(parser, "1,000,000 base pairs, 1 Mb or 1 cM; 100 SNPs")
    add_genotypes(parser)
    add_overwrite(parser, "replace an existing association")
    parser.add_argument("--resume", action="store_true", help="continue a scan that was interrupted")
    add_quiet(parser)
    add_no_report(parser, "do not write gwas.html")


def _read_window_size(text: str) -> float:
    """A size; a file that follows the option is taken for one."""
    try:
        return POSITIVE(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; a FILE stands before --windows, or after --windows=SIZE") from None


def main(args: argparse.Namespace) -> None:
    from mmgibbs.association.results import describe_association
    from mmgibbs.association.run import gwas
    from mmgibbs.machine.output_places import name_results_folder
    from mmgibbs.report.render import can_write_page, print_notes

    quality = {"maf": args.maf, "call_rate": args.call_rate}
    how = collect_arguments(gwas, args) | {
        "genotypes": read_genotypes(args, args.genotypes),
        "output": args.output or name_results_folder(args.run, "gwas"),
        "quality": {name: least for name, least in quality.items() if least is not None},
        "exact_limit": 60 * args.exact_limit,
        "windows": args.windows if args.window_snps is None else {"snps": args.window_snps},
        "report": not args.no_report and can_write_page("gwas.html"),
    }
    made = gwas(**how)
    print_notes(made.notes, args.quiet)
    print("\n".join(describe_association(made)))
    print(f"written to {made.directory}")


def _add_region_width(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--region-width",
        metavar="SIZE",
        type=POSITIVE,
        help="width of a region around one SNP beyond the threshold, in the unit of the map; without a map a number of "
        f"SNPs (default: {default})",
    )


def add_finemap_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Fine-map the regions in which mmgibbs gwas found SNPs beyond the threshold. An analysis is drafted and run: "
        "the model of the run with effects of the SNPs of these regions (prior bayes_c), and of all other SNPs "
        "together (rr) as polygenic term. You get the probability that each SNP has an effect (PIP), and for each "
        "region a 95 % credible set: the fewest SNPs some of which have an effect in 95 % of the draws.",
        "The prior probability of an effect is that among all SNPs of the file, not among those that passed.",
    )
    parser.add_argument("association", metavar="DIR", help="folder that mmgibbs gwas wrote, of a run with one trait")
    add_output(parser, "the folder to write (default: the name of the association with -finemap added)")
    parser.add_argument(
        "--effects",
        type=POSITIVE,
        metavar="N",
        help="SNPs that are expected to have an effect, of all SNPs (default: the number of regions)",
    )
    _add_region_width(parser, "the regions of the association")
    add_set(parser)
    add_overwrite(parser, "replace an existing fine-mapping")
    parser.add_argument("--resume", action="store_true", help="continue a fine-mapping that was interrupted")
    add_quiet(parser)


def finemap_command(args: argparse.Namespace) -> None:
    from mmgibbs.association.fine_map import finemap
    from mmgibbs.association.results import describe_fine_map
    from mmgibbs.report.render import print_notes

    made = finemap(**collect_arguments(finemap, args))
    print_notes(made.notes, args.quiet)
    print("\n".join(describe_fine_map(made)))
    print(f"written to {made.directory}")


COMMANDS = {"gwas": (add_arguments, main), "finemap": (add_finemap_arguments, finemap_command)}
