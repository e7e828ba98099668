"""The figures of docs/explanation/speed.md: this program on the cases that were run with other programs.

    PYTHONPATH=tests python benchmarks/peers.py CASE ...        one or more of the names below; all: every one

Data are those of ../shared/data. Each case runs once with few sweeps, so that kernels are compiled and loaded, and then
counts. Seconds are those of the processor for the whole call of `mmgibbs.run`, from reading the tables over burn-in to
the summary, with one chain and one thread; effective draws are those of its own summary (bulk ESS) after burn-in.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from helpers.genotypes import write_plink  # noqa: E402
from helpers.shared_cases import analysis as shared_analysis  # noqa: E402
from helpers.support import shared_data  # noqa: E402

import mmgibbs  # noqa: E402
from benchmarks.regressions_defaults import simulate_classes  # noqa: E402

SAMPLER = {"chains": 1, "thin": 1, "threads": 1, "seed": 1, "checkpoint_every": "never"}
FEW = {"burn_in": 110, "samples": 20}  # marginal learns in 100 sweeps at least
Case = Callable[[Path], list[str]]  # in a folder for its files; lines to print
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Enter a case by its name."""
    CASES[function.__name__] = function
    return function


def run_timed(analysis: dict, folder: Path, **sampler: object) -> tuple[object, float]:
    """The result of an analysis and seconds of the processor."""
    given = analysis | {"sampler": SAMPLER | sampler, "output": {"directory": str(folder / "run")}}
    started = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        result = mmgibbs.run(given, progress=False, report=False, overwrite=True)
    return result, time.process_time() - started


def draw_rate(label: str, analysis: dict, folder: Path, names: tuple[str, ...], **sampler: object) -> str:
    """Effective draws a second: the least of the parameters whose names begin with one of `names`."""
    run_timed(analysis, folder, **sampler | FEW)
    result, seconds = run_timed(analysis, folder, **sampler)
    rows = result.summary.filter(pl.col("parameter").str.contains("^(" + "|".join(names) + ")") & (pl.col("sd") > 0))
    row = rows.sort("ess_bulk").row(0, named=True)
    return (
        f"{label}: {row['ess_bulk'] / seconds:.3g} effective draws a second of {row['parameter']} "
        f"({row['ess_bulk']:.0f} in {seconds:.1f} s, engine {result.info.get('engine', '-')})"
    )


def gryphon_case(folder: Path, traits: list[str]) -> dict:
    analysis = shared_analysis("gryphon, two traits", folder)
    return {key: value for key, value in analysis.items() if key not in ("sampler", "output")} | {"traits": traits}


VARIANCES = (r"[a-z_]+\.var\[",)


@case
def gryphon_one_trait(folder: Path) -> list[str]:
    """Birth weight: animals, mothers, birth years; the slowest variance."""
    one = gryphon_case(folder, ["bwt"])
    return [
        draw_rate("marginal", one, folder, VARIANCES, engine="marginal", burn_in=1000, samples=10_000),
        draw_rate("serial", one, folder, VARIANCES, engine="serial", burn_in=1000, samples=20_000),
        draw_rate("auto", one, folder, VARIANCES, burn_in=1000, samples=10_000),
    ]


@case
def gryphon_two_traits(folder: Path) -> list[str]:
    """Birth weight and tarsus, four covariance matrices; the slowest variance."""
    two = gryphon_case(folder, ["bwt", "tarsus"])
    return [draw_rate("auto", two, folder, VARIANCES, burn_in=2000, samples=20_000)]


@case
def plodia(folder: Path) -> list[str]:
    """Pupated or not, of 874 animals; h2 on the scale of the liability."""
    analysis = {
        "name": "plodia",
        "data": {
            "phenotypes": str(shared_data("data/traits/plodia_animal.csv")),
            "pedigree": str(shared_data("data/traits/plodia_animal_pedigree.csv")),
        },
        "traits": {"pupated": {"type": "binary"}},
        "model": {"fixed": {}, "random": {"genetic": {"level": "animal", "relationship": "pedigree"}}},
    }
    return [draw_rate("auto", analysis, folder, (r"h2\[",), burn_in=2000, samples=40_000)]


def wheat_case(folder: Path, prior: str) -> dict:
    data = np.load(shared_data("data/genomics/bglr_wheat/wheat.npz"), allow_pickle=True)
    X, y = data["X"].astype(int), data["Y"][:, 0]
    ids = [f"line{i}" for i in range(len(y))]
    pl.DataFrame({"animal": ids} | {f"snp{j}": X[:, j] for j in range(X.shape[1])}).write_csv(folder / "wheat.csv")
    pl.DataFrame({"animal": ids, "y": y}).write_csv(folder / "yields.csv")
    kept = {"maf": 0, "call_rate": 0, "animal_call_rate": 0}
    return {
        "name": "wheat",
        "data": {
            "phenotypes": str(folder / "yields.csv"),
            "genotypes": {"file": str(folder / "wheat.csv"), "quality": kept},
        },
        "traits": ["y"],
        "model": {"fixed": {}, "markers": {"snps": {"prior": prior}}},
    }


@case
def wheat(folder: Path) -> list[str]:
    """599 lines, 1,279 SNPs, the first environment; h2 = genomic variance over itself and the residual variance."""
    return [
        draw_rate(prior, wheat_case(folder, prior), folder, (r"h2\[",), burn_in=2000, samples=20_000)
        for prior in ("rr", "bayes_a", "bayes_b", "bayes_c")
    ]


def mice_case(folder: Path) -> tuple[dict, list[str]]:
    X = np.load(shared_data("data/genomics/bglr_mice/mice_X.npz"))["X"]
    table = pl.read_csv(shared_data("data/genomics/bglr_mice/mice_pheno.csv"), infer_schema_length=None)
    ids = [f"mouse{i}" for i in range(len(X))]
    pl.DataFrame({"animal": ids} | {f"snp{j}": X[:, j] for j in range(X.shape[1])}).write_csv(folder / "mice.csv")
    pl.DataFrame({"animal": ids, "bmi": table["Obesity.BMI"]}).write_csv(folder / "records.csv")
    data = {"phenotypes": str(folder / "records.csv"), "genotypes": str(folder / "mice.csv")}
    return {"name": "mice", "data": data, "traits": ["bmi"]}, ids


@case
def mice_bayes_c(folder: Path) -> list[str]:
    """1,814 mice, 10,346 SNPs: the share of SNPs with an effect, from the default start."""
    analysis, _ = mice_case(folder)
    analysis |= {"model": {"fixed": {}, "markers": {"snps": {"prior": "bayes_c"}}}}
    sampler = {"burn_in": 2000, "samples": 10_000, "precision": "single"}
    return [draw_rate("bayes_c", analysis, folder, (r"snps\.pi\[",), **sampler)]


def command_seconds(command: list[str], folder: Path, repetitions: int = 2) -> float:
    """Least seconds of the processor of a command with one thread, in a folder."""
    spent, one = [], {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(repetitions):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, cwd=folder, capture_output=True, env=os.environ | one)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


@case
def gwas(folder: Path) -> list[str]:
    """1,814 mice, 10,346 SNPs: `mmgibbs gwas` of a GBLUP run, and GEMMA where it is installed (Debian: gemma)."""
    analysis, ids = mice_case(folder)
    X = np.load(shared_data("data/genomics/bglr_mice/mice_X.npz"))["X"]
    snps = [f"snp{j}" for j in range(X.shape[1])]
    write_plink(folder / "mice.bed", X.T, ids, snps, np.ones(len(snps), int), np.arange(1, len(snps) + 1))
    analysis["data"]["genotypes"] = str(folder / "mice.bed")
    analysis["model"] = {"fixed": {}, "random": {"genetic": {"level": "animal", "relationship": "genomic"}}}
    run_timed(analysis, folder, method="reml")
    own = [sys.executable, "-m", "mmgibbs", "gwas", str(folder / "run"), "--overwrite", "--no-report", "--quiet"]
    lines = [f"mmgibbs gwas: {command_seconds(own, ROOT, 3):.1f} s"]
    if shutil.which("gemma") is None:
        return [*lines, "GEMMA is not installed"]
    records = pl.read_csv(folder / "records.csv")["bmi"]
    rows = [f"mice {name} 0 0 0 {y}" for name, y in zip(ids, records, strict=True)]
    (folder / "mice.fam").write_text("\n".join(rows) + "\n")
    seconds = [
        command_seconds(["gemma", "-bfile", "mice", *words.split()], folder)
        for words in ("-gk 1 -o k", "-k output/k.cXX.txt -lmm 1 -o l")
    ]
    return [*lines, f"GEMMA -lmm 1: {seconds[1]:.1f} s, and {seconds[0]:.1f} s for its relationships (-gk 1)"]


def reml_seconds(label: str, analysis: dict, folder: Path) -> str:
    """Seconds of the call in a process that has run it before, of `check`, and of the whole command with its page."""
    analysis = {key: value for key, value in analysis.items() if key not in ("sampler", "output")}
    run_timed(analysis, folder, method="reml")
    result, seconds = run_timed(analysis, folder, method="reml")
    started = time.process_time()
    mmgibbs.check(analysis | {"sampler": SAMPLER | {"method": "reml"}})
    reading = time.process_time() - started
    file = folder / "reml.yaml"
    given = analysis | {"sampler": {"method": "reml", "threads": 1}, "output": {"directory": str(folder / "command")}}
    file.write_text(yaml.safe_dump(given))
    command = [sys.executable, "-m", "mmgibbs", "run", str(file), "--quiet", "--overwrite"]
    spent = command_seconds(command, ROOT)
    parts = f"{seconds:.2f} s the call, {reading:.2f} s check alone, {spent:.1f} s the command"
    return f"{label}: {parts}, {result.info['iterations']} iterations"


@case
def reml(folder: Path) -> list[str]:
    """REML: gryphon, milk, simdata with two traits, and GBLUP of the mice."""
    two = shared_analysis("simdata", folder)
    two["traits"] = {"y1": {"missing": [0]}, "y2": {"missing": [0]}}
    mice, _ = mice_case(folder)
    mice["model"] = {"fixed": {}, "random": {"genetic": {"level": "animal", "relationship": "genomic"}}}
    cases = {
        "gryphon": shared_analysis("gryphon", folder),
        "milk": shared_analysis("milk", folder),
        "simdata, two traits": two,
        "mice, GBLUP": mice,
    }
    return [reml_seconds(name, analysis, folder) for name, analysis in cases.items()]


@case
def bank(folder: Path) -> list[str]:
    """2,348 choices of 150 people, five attributes, age: a logit with coefficients for each person; Delta and V."""
    analysis = {
        "name": "bank",
        "data": {"phenotypes": str(shared_data("data/bank/bank_150.csv"))},
        "model": {
            "plugin": "hierarchical_slice",
            "response": "choice",
            "predictors": ["Med_FInt", "Low_Fee", "Bank_B", "Out_State", "High_Rebate"],
            "groups": "id",
            "group_predictors": ["z1"],
        },
    }
    names = (r"population\[", r"covariance\[")
    lines = []
    for method in ("auto", "slice"):
        analysis["model"]["options"] = {"method": method, "save_groups": False}
        lines.append(draw_rate(method, analysis, folder, names, burn_in=1000, samples=20_000))
    return lines


@case
def horseshoe(folder: Path) -> list[str]:
    """400 records, 12 predictors, nearly separated; coefficients, intercept and tau."""
    X, y, _ = simulate_classes("400,12,3,8,0,.5")
    table = pl.DataFrame({"y": y} | {f"x{j}": X[:, j] for j in range(X.shape[1])})
    table.write_csv(folder / "separated.csv")
    analysis = {
        "name": "horseshoe",
        "data": {"phenotypes": str(folder / "separated.csv")},
        "model": {"plugin": "horseshoe_probit", "response": "y", "predictors": "x*"},
    }
    lines = []
    for way in ("auto", False):
        analysis["model"]["options"] = {"collapsed": way}
        label = f"collapsed: {str(way).lower()}"
        lines.append(draw_rate(label, analysis, folder, (r"beta\[", "intercept", "tau"), burn_in=1000, samples=10_000))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", choices=["all", *CASES], metavar="CASE", help=", ".join(CASES))
    asked = parser.parse_args().cases
    for name in CASES if "all" in asked else asked:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}\n  " + "\n  ".join(CASES[name](Path(folder))), flush=True)


if __name__ == "__main__":
    main()
