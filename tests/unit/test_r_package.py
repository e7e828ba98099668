"""The R package in r/: the same results as Python, bit for bit, its own tests, and R CMD check."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from helpers.support import ROOT

import mmgibbs

R, RSCRIPT = shutil.which("R"), shutil.which("Rscript")
PACKAGE = ROOT / "r"
GRYPHON = ROOT.parent / "shared" / "data" / "gryphon"
PAGE = (ROOT / "docs" / "how-to" / "from-r.md").read_text(encoding="utf-8")


def run_r(*command, folder, library=None):
    """Run a command of R, with the program of this environment on the search path."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"_R_CHECK_FORCE_SUGGESTS_": "false"} | ({"R_LIBS": str(library)} if library else {})
    how = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "encoding": "utf-8"}
    done = subprocess.run([R, *command], check=False, **how)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of R that has the package."""
    if R is None:
        pytest.skip("needs R (Debian: apt-get install r-base-core r-cran-jsonlite), which is not here")
    if subprocess.run([R, "--slave", "-e", "library(jsonlite)"], capture_output=True, check=False).returncode:
        pytest.skip("needs the R package jsonlite (Debian: apt-get install r-cran-jsonlite), which is not here")
    pytest.importorskip("formulaic", reason="needs formulaic: pip install formulaic")
    if not (Path(sys.executable).parent / "mmgibbs").exists():
        pytest.skip("needs the command mmgibbs: pip install -e .")
    folder = tmp_path_factory.mktemp("library")
    run_r("CMD", "INSTALL", "--no-docs", "-l", folder, PACKAGE, folder=folder)
    return folder


def fit_in_r(folder, library, call, text_columns):
    """Fit in R what `call` says of the data frames records and pedigree; returns its tables, as text of every digit."""
    text = "c(" + ", ".join(f'{name} = "character"' for name in text_columns) + ")"
    (folder / "fit.R").write_text(
        f"""
        library(mmgibbs)
        records <- read.csv("records.csv", colClasses = {text})
        pedigree <- read.csv("pedigree.csv", colClasses = "character", na.strings = "")
        fit <- suppressWarnings(mm({call}))
        write <- getFromNamespace("json_text", "mmgibbs")
        tables <- lapply(list(summary = fit$summary, solutions = fit$solutions), lapply, as.list)
        writeLines(write(c(tables, list(warnings = as.list(fit$warnings)))), "fit.json")
        """,
        encoding="utf-8",
    )
    run_r("--slave", "-f", "fit.R", folder=folder, library=library)
    return json.loads((folder / "fit.json").read_text(encoding="utf-8"))


def assert_same(in_r, result):
    """Every number of both tables is the same bit for bit."""
    for name in ("summary", "solutions"):
        expected = getattr(result, name)
        assert list(in_r[name]) == expected.columns
        for column in expected.columns:
            values = in_r[name][column]
            if expected.schema[column] == pl.String:
                assert values == expected[column].fill_null("").to_list(), column
            else:
                assert values == [None if v is None or v != v else v for v in expected[column].to_list()], column
    assert all(any(text in said for said in in_r["warnings"]) for text in result.info["warnings"])


def read_gryphon():
    """Records and pedigree of the gryphons of the R tutorials; simulated calves where they are absent."""
    if GRYPHON.is_dir():
        names = ("gryphon.csv", "gryphonped.csv")
        records, pedigree = (pl.read_csv(GRYPHON / name, null_values=["NA", ""]) for name in names)
        return records, pedigree.cast(pl.String), "bwt ~ sex + byear + (1 | animal)", ("animal", "sex", "byear")
    folder = ROOT / "data_samples" / "sheep"
    records = pl.read_csv(folder / "shearings.csv", infer_schema_length=None)
    pedigree = pl.read_csv(folder / "pedigree.csv", infer_schema_length=None).cast(pl.String)
    return records, pedigree, "fleece_weight ~ flock_year + (1 | animal)", ("animal", "flock_year")


def test_sampling_from_r_is_sampling_from_python(tmp_path, library):
    records, pedigree, formula, classes = read_gryphon()
    records = records.cast(dict.fromkeys(classes, pl.String))
    records.write_csv(tmp_path / "records.csv")
    pedigree.write_csv(tmp_path / "pedigree.csv")
    call = f"{formula}, records, pedigree, chains = 1, burn_in = 10, samples = 40, thin = 2, seed = 7, threads = 1"
    in_r = fit_in_r(tmp_path, library, call, classes)
    settings = {"chains": 1, "burn_in": 10, "samples": 40, "thin": 2, "seed": 7, "threads": 1}
    assert_same(in_r, mmgibbs.model(formula, records, pedigree).fit(**settings, progress=False))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weights and codes", "binary", "genotypes"])
def test_other_models_from_r_are_those_from_python(tmp_path, library, kind):
    data = mmgibbs.simulate(tmp_path / "data", animals=300, years=5, seed=3)
    records = data.phenotypes.with_columns(
        herd=(pl.int_range(pl.len()) % 4 + 1).cast(pl.String), n=1 + pl.int_range(pl.len()) % 3,
        heavy=pl.col("weaning_weight") > pl.col("weaning_weight").median(),
    )  # fmt: skip
    records.write_csv(tmp_path / "records.csv")
    data.pedigree.write_csv(tmp_path / "pedigree.csv")
    arguments, keywords, settings = "", {}, {"method": "reml"}
    formula = "weaning_weight ~ herd + sex + (1 | animal)"
    if kind == "weights and codes":
        arguments, keywords = ', weights = "n", reml = TRUE', {"weights": "n"}
    elif kind == "binary":
        formula = "heavy ~ sex + (1 | animal)"
        settings = {"chains": 1, "samples": 60, "burn_in": 10, "variances": {"animal": {"prior": {"half_t": {}}}}}
        arguments = ", family = binomial, chains = 1, samples = 60, burn_in = 10, "
        arguments += "variances = list(animal = list(prior = list(half_t = list())))"
        keywords = {"family": "binary"}
    else:
        (tmp_path / "geno.csv").write_text(
            "id,a,b,c\n"
            + "".join(f"{animal},{i % 3},{i % 2},{i * i % 3}\n" for i, animal in enumerate(data.pedigree["animal"]))
        )
        formula = "weaning_weight ~ sex + (1 | genomic(animal))"
        arguments = ', reml = TRUE, genotypes = as.matrix(read.csv("geno.csv", row.names = 1))'
        keywords = {"genotypes": tmp_path / "geno.csv"}
    in_r = fit_in_r(tmp_path, library, f"{formula}, records, pedigree{arguments}", ["animal", "herd"])
    assert_same(in_r, mmgibbs.model(formula, records, data.pedigree, **keywords).fit(**settings, progress=False))


def test_tables_formulas_and_messages(library, tmp_path):
    assert "tables: done" in run_r("--slave", "-f", PACKAGE / "tests" / "tables.R", folder=tmp_path, library=library)


@pytest.mark.slow
def test_the_page_runs(library, tmp_path):
    (tmp_path / "data_samples").symlink_to(ROOT / "data_samples")
    snippets = re.findall(r"^<!-- r package -->\n```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(snippets) == 3
    (tmp_path / "page.R").write_text("library(mmgibbs)\n" + "\n".join(snippets), encoding="utf-8")
    said = run_r("--slave", "-f", "page.R", folder=tmp_path, library=library)
    assert "Method: REML" in said and "h2[yearling_weight]" in said and "reliability" in said


@pytest.mark.slow
def test_r_cmd_check_has_no_error_warning_or_note(library, tmp_path):
    """It also runs the tests of the package, the examples of its help pages and its vignette."""
    needed = ("knitr", "markdown")
    absent = [name for name in needed if f'"{name}"' not in json.dumps(_installed(tmp_path))]
    if absent:
        pytest.skip(f"needs the R packages {', '.join(absent)} (Debian: r-cran-NAME), which are not here")
    run_r("CMD", "build", PACKAGE, folder=tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    said = run_r("CMD", "check", "--no-manual", archive.name, folder=tmp_path)
    assert re.search(r"^Status: OK$", said, re.MULTILINE), said
    assert "results: done" in (tmp_path / "mmgibbs.Rcheck" / "tests" / "results.Rout").read_text(encoding="utf-8")


def _installed(folder):
    code = "writeLines(jsonlite::toJSON(rownames(installed.packages())))"
    return json.loads(run_r("--slave", "-e", code, folder=folder))


def test_the_package_has_the_version_of_the_program():
    description = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    assert re.search(r"^Version: (.*)$", description, re.MULTILINE)[1] == mmgibbs.__version__
    imports = re.search(r"^Imports: (.*)$", description, re.MULTILINE)[1].split(", ")
    assert set(imports) - {"graphics", "stats", "tools", "utils"} == {"jsonlite"}, "the only package beside those of R"
    assert (PACKAGE / "LICENSE.md").read_text() == (ROOT / "LICENSE").read_text()


def test_every_function_is_explained_on_the_page():
    exported = re.findall(r"^export\((\w+)\)$", (PACKAGE / "NAMESPACE").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(exported) >= 10 and [name for name in exported if f"`{name}(" not in PAGE] == []
    manual = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "man").glob("*.Rd"))
    assert [name for name in exported if f"\\alias{{{name}}}" not in manual] == []


def test_snippets_without_the_package_read_what_python_reads(tmp_path):
    snippets = re.findall(r"^<!-- r -->\n```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(snippets) == 3
    if RSCRIPT is None:
        pytest.skip("needs R (Debian: apt-get install r-base-core r-cran-ncdf4), which is not here")
    if subprocess.run([RSCRIPT, "-e", "library(ncdf4)"], capture_output=True, check=False).returncode:
        pytest.skip("needs the R package ncdf4 (Debian: apt-get install r-cran-ncdf4), which is not here")
    short = ["sampler={samples: 60, burn_in: 10, thin: 2, chains: 3, threads: 1}"]
    result = mmgibbs.run(ROOT / "configs" / "first.yaml", short, directory=tmp_path / "runs" / "first", progress=False)
    shown = '\ncat("mean", format(mean(h2), digits = 15), "\\n")\ncat("best", best$level[1], "\\n")\n'
    (tmp_path / "all.R").write_text("\n".join(snippets) + shown, encoding="utf-8")
    done = subprocess.run([RSCRIPT, "all.R"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    posterior = result.draws["posterior"]
    h2 = next(v for v in posterior.data_vars.values() if v.attrs.get("long_name") == "h2[yearling_weight]")
    assert "[1] 30  3" in done.stdout and h2.dims == ("chain", "draw") and h2.shape == (3, 30)
    mean, best = (re.search(rf"^{word} (\S+)", done.stdout, re.MULTILINE)[1] for word in ("mean", "best"))
    assert float(mean) == pytest.approx(float(h2.mean()), rel=1e-12)
    assert best == result.solutions.filter(term="animal").sort("mean", descending=True)["level"][0]
    assert (tmp_path / "mine" / "records.csv").read_text(encoding="utf-8").splitlines()[3] == '"e","m",NA'
