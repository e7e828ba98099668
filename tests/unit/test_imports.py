"""Imports go down only, the solver core needs neither Polars nor pydantic, and the page on it says so."""

import ast
import re
import subprocess
import sys
import textwrap
from fnmatch import fnmatch
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from helpers.compiled import PACKAGES as PACKAGE_FOLDERS
from helpers.compiled import SOURCES
from helpers.packages_picture import picture
from helpers.support import ROOT
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

# What each package may import besides `errors` and OPEN. `runs` combines them all.
PACKAGES = {
    "errors": set(),
    "machine": {"pedigree"},  # where kernels are kept
    "draws": {"machine"},
    "genotypes": {"machine"},
    "config": {"machine", "models", "genotypes"},  # of the last two, what says how it is written: see CONFIG_SEES
    "models": {"genotypes", "pedigree"},
    "equations": {"machine", "models", "pedigree"},
    "likelihood": {"equations", "draws", "machine", "models"},
    "engines": {"likelihood", "equations", "models", "draws", "machine"},
    "posterior": {"models"},
    # of the engines, their contract alone: see SAMPLER_SEES
    "sampler": {"engines", "genotypes", "machine", "models", "draws", "posterior"},
    "regressions": {"draws", "machine", "posterior", "sampler"},  # of the sampler, the loop alone: see REGRESSIONS_SEE
    "data": {"config", "genotypes", "models", "pedigree"},
    "reml": {"likelihood", "engines", "equations", "models", "draws", "machine"},
    "results": {"posterior", "data", "models", "machine", "pedigree"},
    "report": {
        "results",
        "data",
        "machine",
        "models",
        "pedigree",
    },  # of the models, see REPORT_SEES
}
PACKAGES["build"] = set(PACKAGES) - {"errors", "report", "regressions", "reml"} | {"pedigree"}
PACKAGES["runs"] = set(PACKAGES) - {"errors"} | {"pedigree"}
EDGES = set("validation exchange simulation draft association population local_page".split())
for edge in (*EDGES, "cli"):
    PACKAGES[edge] = set(PACKAGES["runs"]) | {"runs"}
OPEN = {"mmgibbs.pedigree.kernels", "mmgibbs.options"}  # the decorator of compiled functions, options of commands
PACKAGES["cli"] |= EDGES
CHOLESKY, CHOLESKY_LIBRARIES = (
    "mmgibbs.likelihood.cholesky",
    {"numpy", "scipy"},
)  # could be used alone
SAMPLER_SEES = {"mmgibbs.engines.base", "mmgibbs.engines.device_sweep"}
REGRESSIONS_SEE = {"mmgibbs.sampler.loop", "mmgibbs.sampler.schedule"}
REPORT_SEES = {f"mmgibbs.models.{name}" for name in ("structures", "structures.base", "engine_kinds", "families")}
REPORT_SEES |= {"mmgibbs.models.priors"}
CONFIG_SEES = {
    f"mmgibbs.models.{name}" for name in ("labels", "gpu_rules", "marker_priors", "priors.base", "priors.keys")
} | REPORT_SEES
CONFIG_SEES |= {"mmgibbs.genotypes.formats"}
CORE = ("errors machine models draws genotypes equations likelihood engines sampler posterior reml regressions").split()
INPUT_LIBRARIES = {"polars", "pydantic", "pydantic_core", "matplotlib", "jinja2"}
CORE_LIBRARIES = {"numpy", "scipy", "numba", "llvmlite", "yaml", "tqdm", "cupy", "cupyx"}
# Libraries that the core imports inside functions: diagnostics, files of draws, processes, what scikit-learn asks.
LAZY_CORE_LIBRARIES = {"arviz_stats", "xarray", "h5netcdf", "h5py", "joblib", "threadpoolctl", "psutil", "sklearn"}
# A structure whose kind a key of it chooses.
CIRCLES_IN_FUNCTIONS = [["mmgibbs.models.structures.factor_analytic", "mmgibbs.models.structures.shrunken_factors"]]
MAX_CIRCLES_OF_TYPES = 15


class Import(NamedTuple):
    module: str  # that imports
    name: str  # what it imports, dotted
    line: int
    lazy: bool  # inside a function, or for type checkers alone
    for_types: bool = False  # for type checkers alone
    members: tuple[str, ...] = ()  # what `from name import ...` takes of it


def imports_of(source: str, module: str) -> list[Import]:
    found = []

    def visit(node, lazy, for_types):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend(Import(module, alias.name, child.lineno, lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module} line {child.lineno}: imports are absolute"
                # `from mmgibbs import design` imports the module mmgibbs.design
                of_package = child.module in ("mmgibbs", "mmgibbs.pedigree")
                names = [f"{child.module}.{a.name}" for a in child.names] if of_package else [child.module]
                members = tuple(a.name for a in child.names)
                found.extend(Import(module, name, child.lineno, lazy, for_types, members) for name in names)
            later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            never = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            visit(child, lazy or later or never, for_types or never)

    visit(ast.parse(source), False, False)
    return found


@cache
def all_imports() -> list[Import]:
    out = []
    for path in SOURCES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        out += imports_of(path.read_text(encoding="utf-8"), module)
    return out


def package_of(name: str) -> str | None:
    """The package of a dotted name; None outside the project and for the public package itself."""
    parts = name.split(".")
    return parts[1] if parts[0] == "mmgibbs" and len(parts) > 1 and parts[1] in {*PACKAGES, "pedigree"} else None


def violations(imports: list[Import]) -> list[str]:
    wrong = []
    for i in imports:
        own, other = package_of(i.module), package_of(i.name)
        where = f"{i.module} line {i.line}: {i.name}"
        if own == "pedigree" and i.name.split(".")[0] == "mmgibbs" and other != "pedigree":
            wrong.append(f"{where} (pedigree knows nothing of mmgibbs)")
        elif own in PACKAGES and other is not None and i.name not in OPEN:
            allowed = {own, "errors"} | PACKAGES[own]
            if other not in allowed:
                wrong.append(f"{where} ({own} may not import {other})")
        library = i.name.split(".")[0]
        if own in CORE and library not in {"mmgibbs"} | CORE_LIBRARIES | set(sys.stdlib_module_names):
            if library in INPUT_LIBRARIES or not (i.lazy and library in LAZY_CORE_LIBRARIES):
                wrong.append(f"{where} (the solver core may not need {library})")
        known = library in CHOLESKY_LIBRARIES | set(sys.stdlib_module_names) or i.name in OPEN
        if i.module.startswith(CHOLESKY) and not (known or i.name.startswith(CHOLESKY)):
            wrong.append(f"{where} (cholesky knows NumPy and SciPy alone)")
        if own == "sampler" and other == "engines" and i.name not in SAMPLER_SEES:
            wrong.append(f"{where} (sampler sees of the engines their contract alone)")
        if own == "regressions" and other == "sampler" and i.name not in REGRESSIONS_SEE:
            wrong.append(f"{where} (regressions see of the sampler the loop over sweeps alone)")
        if own == "config" and other in ("models", "genotypes") and i.name not in CONFIG_SEES:
            wrong.append(f"{where} (config sees of the core {sorted(CONFIG_SEES)} alone)")
        if own == "report" and other == "models" and i.name not in REPORT_SEES:
            wrong.append(f"{where} (the report sees of the models {sorted(REPORT_SEES)} alone)")
        if library in ("benchmarks", "tests"):
            wrong.append(f"{where} (the packages that are installed may not need {library})")
        if library in ("cupy", "cupyx") and i.module != "mmgibbs.machine.device":
            wrong.append(f"{where} (only mmgibbs.machine.device imports cupy)")
    return wrong


def test_imports_go_down_only():
    assert violations(all_imports()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mmgibbs.engines.serial", "from mmgibbs.data import prepare"),
        ("mmgibbs.engines.serial", "def f():\n    from mmgibbs.config import load_config"),
        ("mmgibbs.config.effects", "from mmgibbs.models.design import Term"),
        ("mmgibbs.posterior.summary", "def f():\n    import polars"),
        ("mmgibbs.regressions.lasso", "from mmgibbs.sampler.chain import Chain"),
        ("mmgibbs.engines.base", "import cupy"),
        ("mmgibbs.likelihood.cholesky.factor", "from mmgibbs.errors import ModelError"),
        ("mmgibbs.pedigree.read", "def f():\n    import mmgibbs"),
        ("mmgibbs.runs.bench.command", "def f():\n    from benchmarks.engines import bench_engines"),
    ],
)
def test_an_import_that_goes_up_is_seen(module, source):
    assert len(violations(imports_of(source, module))) == 1


def test_the_packages_have_no_loop():
    order, rest = [], {name: others - {"pedigree"} for name, others in PACKAGES.items()}
    while rest:
        free = [name for name, others in rest.items() if others <= set(order)]
        assert free, f"packages that import each other: {sorted(rest)}"
        order += free
        rest = {name: others for name, others in rest.items() if name not in free}


def circles(imports: list[Import]) -> list[list[str]]:
    """Files that import each other, directly or through others."""
    files = sorted({i.module for i in imports})
    number = {file: n for n, file in enumerate(files)}
    pairs = set()
    for i in imports:
        parts = [part for part in (f"{i.name}.{member}" for member in i.members) if part in number]
        pairs |= {(number[i.module], number[name]) for name in parts or [i.name] if name in number}
    rows, columns = np.array(sorted(pairs), int).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(files), len(files)))
    of_file = connected_components(graph, connection="strong")[1]
    return [[files[n] for n in np.flatnonzero(of_file == c)] for c in np.flatnonzero(np.bincount(of_file) > 1)]


def test_files_that_import_each_other():
    """None does when it is read; circles of types alone may only become fewer."""
    imports = all_imports()
    assert circles([i for i in imports if not i.lazy]) == []
    assert circles([i for i in imports if not i.for_types]) == CIRCLES_IN_FUNCTIONS
    assert len(circles(imports)) <= MAX_CIRCLES_OF_TYPES


def test_a_circle_through_a_function_is_seen():
    sources = {"mmgibbs.a": "import mmgibbs.b", "mmgibbs.b": "def f():\n    from mmgibbs.a import g", "mmgibbs.c": ""}
    found = [i for module, source in sources.items() for i in imports_of(source, module)]
    assert circles(found) == [["mmgibbs.a", "mmgibbs.b"]]
    assert circles([i for i in found if not i.lazy]) == []


def test_the_source_tree_has_the_packages_of_the_table():
    loose = {p.stem for p in (ROOT / "mmgibbs").glob("*.py")}
    assert loose == {"__init__", "__main__", "cli", "errors", "options"}
    packages = {p.stem for p in (ROOT / "mmgibbs").glob("[!_]*") if p.suffix == ".py" or any(p.rglob("*.py"))}
    packages -= {"pedigree", *(name.removeprefix("mmgibbs.") for name in OPEN)}
    assert packages <= set(PACKAGES), f"packages without a place in the order: {sorted(packages - set(PACKAGES))}"
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    top = {p.name for p in ROOT.iterdir() if not any(fnmatch(p.name, pattern) for pattern in ignored)}
    assert top - {".git", "PKG-INFO", "setup.cfg"} == {  # the last two in an unpacked source distribution
        "pedigree", "mmgibbs", "benchmarks", "configs", "data_samples", "docs", "r", "tests",
        "pyproject.toml", "mkdocs.yml", "MANIFEST.in", "CITATION.cff",
        "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
        "Dockerfile", ".dockerignore", "conda", "SECURITY.md",
        ".ci", ".github", ".gitignore", ".git-blame-ignore-revs", ".pre-commit-config.yaml",
    }  # fmt: skip


WITHOUT_INPUT_LIBRARIES = """
    import importlib, importlib.abc, sys
    from pathlib import Path

    class Blocked(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {blocked}:
                raise ImportError(f"blocked: {{name}}")

    sys.meta_path.insert(0, Blocked())
    for name in {core}:
        package = Path("mmgibbs", name)
        names = [f"mmgibbs.{{name}}"] if package.with_suffix(".py").exists() or package.is_dir() else []
        names += [".".join(p.with_suffix("").parts) for p in sorted(package.rglob("*.py")) if p.stem != "__init__"]
        for name in names:
            importlib.import_module(name)

    import numpy as np
    from mmgibbs.models.design import Design
    from mmgibbs.models.relationships.pedigree import Pedigree
    from mmgibbs.models.terms import Effect, Levels, Related, Term
    from mmgibbs.engines.serial import SerialEngine
    from mmgibbs.equations.partition import partition
    from mmgibbs.equations.structured import structured_equations
    from mmgibbs.sampler.chain import sample_chain
    from mmgibbs.sampler.mixed_model import MixedModel
    from mmgibbs.sampler.schedule import Schedule
    from mmgibbs.models.covariance import CovarianceModel
    from mmgibbs.models.priors import InverseWishart
    from mmgibbs.pedigree.inbreeding import inbreeding
    from mmgibbs.pedigree.relationship import relatives

    sire = np.array([-1, -1, -1, 0, 2, 0, 3, 2], np.int32)
    dam = np.array([-1, -1, -1, -1, 1, 1, 4, 5], np.int32)
    kin = relatives(sire, dam, inbreeding(sire, dam))
    sex = Term("sex", Levels((Effect("", np.array([0, 1, 1, 0, 0], np.int32), (0,)),), 2))
    animal = Term("animal", Levels((Effect("", np.arange(3, 8, dtype=np.int32), (0,)),), 8), Related(Pedigree(kin)))
    gain = np.array([[4.5], [2.9], [3.9], [3.5], [5.0]])
    design = Design(("gain",), gain, np.zeros(5, np.int32), np.ones((1, 1), bool), np.ones(5), (sex, animal))
    prior = lambda start: InverseWishart(5.0, np.array([[start]]))
    variance = lambda start: CovarianceModel(np.array([[start]]), False, ((0,),), prior(start))
    model = MixedModel(design, (None, variance(20.0)), variance(40.0))
    engine = SerialEngine(structured_equations(design, partition(design)))
    result = sample_chain(model, engine, Schedule(10, 50), (1, 0))
    assert result.draws["R"].shape == (50, 1, 1) and np.isfinite(result.draws["R"]).all()
    assert not {{"polars", "pydantic"}} & set(sys.modules)
    print("sampled")
"""


def test_the_solver_core_runs_without_polars_and_pydantic():
    script = textwrap.dedent(WITHOUT_INPUT_LIBRARIES.format(blocked=sorted(INPUT_LIBRARIES), core=CORE))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "sampled", done.stderr


def test_the_process_of_a_chain_reads_what_chains_need_alone():
    """Four of them begin with each run; what prepares the data and writes the pages is of no use there, and SciPy is
    read by the steps that call it."""
    code = "import sys, mmgibbs.runs.local, mmgibbs.runs.mixed_model_chains; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    read = set(done.stdout.split())
    assert "mmgibbs.sampler.chain" in read
    unused = INPUT_LIBRARIES | {"mmgibbs.config", "mmgibbs.data", "scipy.sparse", "scipy.linalg", "scipy.special"}
    assert read & unused == set()


PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_of_the_packages_is_that_of_the_table():
    """After a change of the table: python tests/helpers/packages_picture.py"""
    assert (ROOT / "docs" / "explanation" / "packages.svg").read_text(encoding="utf-8") == picture(PACKAGES, CORE)


def test_every_package_has_its_line():
    table = PAGE[PAGE.index("| package |") : PAGE.index("## How data move")]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted({*PACKAGES, "pedigree"})


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/explanation/theory.md", "docs/explanation/architecture.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", text):
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}, anchor


def test_sources_cite_pages_and_files_of_this_repository():
    page, file = re.compile(r"\b([A-Z]{4,}\.md|docs/[\w/-]+\.md)"), re.compile(r"\b[a-z]\w*\.(?:py|cuh|cu)\b")
    files = {p.name for folder in (*PACKAGE_FOLDERS, "tests", "benchmarks") for p in (ROOT / folder).rglob("*.*")}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT).as_posix()
        if where == "mmgibbs/runs/cluster/__init__.py":
            continue  # until its modules are renamed
        assert [name for name in page.findall(text) if not (ROOT / name).exists()] == [], where
        assert [name for name in file.findall(text) if name not in files] == [], where
