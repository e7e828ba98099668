"""What the wheel and the source distribution hold and say of themselves."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from helpers.support import ROOT
from packaging.requirements import Requirement

import mmgibbs
from mmgibbs.report.render import LIBRARIES

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PACKAGES = ("mmgibbs", "pedigree")  # folders at the top
NAMES = {"mmgibbs": "mmgibbs", "pedigree": "mmgibbs.pedigree"}  # to import them
RECIPE = ROOT / "conda" / "recipe.yaml"
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # of packages that conda-forge calls otherwise


def test_the_version_is_the_same_everywhere():
    assert PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mmgibbs.__version__"}
    body = ast.parse((ROOT / "mmgibbs" / "__init__.py").read_text(encoding="utf-8")).body
    literals = [n.value.value for n in body if isinstance(n, ast.Assign) and n.targets[0].id == "__version__"]
    assert literals == [mmgibbs.__version__] and re.fullmatch(r"\d+\.\d+\.\d+([ab]\d+|rc\d+)?", literals[0])
    assert CITATION["version"] == mmgibbs.__version__
    assert f"{mmgibbs.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    try:
        installed = metadata.distribution("mmgibbs")
    except metadata.PackageNotFoundError:
        pytest.skip("mmgibbs is not installed: an unpacked source tree")
    # absent where it is editable, and known by no folder of this tree
    found = Path(installed.locate_file("mmgibbs/__init__.py"))
    if not found.exists() or not found.samefile(mmgibbs.__file__):
        pytest.skip("the mmgibbs that is installed is another one")
    assert installed.version == mmgibbs.__version__


def test_the_version_has_release_notes():
    """The workflow of a release publishes them with the files."""
    notes = (ROOT / "docs" / "releases" / f"{mmgibbs.__version__}.md").read_text(encoding="utf-8")
    assert notes.startswith(f"# Release notes: {mmgibbs.__version__}\n")
    extras = set(re.findall(r"`mmgibbs\[(\w+)\]`", notes))
    assert extras and extras <= set(PROJECT["optional-dependencies"])


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "mmgibbs", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"mmgibbs {mmgibbs.__version__}\n")


def test_the_conda_recipe_says_what_the_package_says():
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    assert recipe["context"] == {"name": PROJECT["name"], "version": mmgibbs.__version__}
    python, *requirements = recipe["requirements"]["run"]
    assert python.replace(" ", "") == f"python{PROJECT['requires-python']}"
    needed = [re.fullmatch(r"([\w-]+)(.*)", text).groups() for text in PROJECT["dependencies"]]
    assert requirements == [f"{CONDA_NAMES.get(name, name)} {bounds}" for name, bounds in needed]
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands
    assert recipe["about"]["license"] == PROJECT["license"] and recipe["about"]["summary"] == PROJECT["description"]


def test_the_conda_recipe_is_rendered():
    rattler_build = pytest.importorskip("rattler_build", reason="needs rattler-build: pip install py-rattler-build")
    (variant,) = rattler_build.Stage0Recipe.from_file(str(RECIPE)).render()
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "mmgibbs", "version": mmgibbs.__version__}
    assert rendered["build"]["noarch"] == "python" and "numba >=0.67" in rendered["requirements"]["run"]


def test_the_image_has_what_its_build_needs():
    """.dockerignore lets in what the Dockerfile installs: both packages, and the files that pyproject.toml names."""
    command = [sys.executable, ROOT / ".ci" / "image", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    steps = done.stdout.splitlines()
    assert sum(step.startswith("RUN ") for step in steps) == 2 and 'ENTRYPOINT ["mmgibbs"]' in steps
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in lines if line[:1] == "!"}
    assert {*PACKAGES, "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]} <= allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_metadata_of_the_project():
    assert [a["name"] for a in CITATION["authors"]] == [a["name"] for a in PROJECT["authors"]]
    assert CITATION["license"] == PROJECT["license"] == "Apache-2.0" and CITATION["type"] == "software"
    assert {"cff-version", "message", "title", "abstract"} <= set(CITATION)
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["classifiers"]
    assert len(set(PROJECT["classifiers"])) == len(PROJECT["classifiers"])
    groups, extras = PYPROJECT["dependency-groups"], PROJECT["optional-dependencies"]
    assert groups and all(groups[name] == extras[name] for name in groups)
    assert set(LIBRARIES) <= {re.split(r"[<>=~]", text)[0] for text in PROJECT["dependencies"]}
    for target in [*PROJECT["scripts"].values(), *PROJECT["entry-points"]["mmgibbs.models"].values()]:
        module, name = target.split(":")
        tree = ast.parse((ROOT / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8"))
        assert name in {getattr(n, "name", None) for n in tree.body}, target


@pytest.mark.parametrize("extra", ["gpu", "gpu12"])
def test_gpu_extras_bring_the_compiler_of_kernels(extra):
    """Kernels are compiled where they run, by NVRTC: it and CUDA's libraries come with the extra `ctk` of CuPy."""
    (cupy,) = map(Requirement, PROJECT["optional-dependencies"][extra])
    assert cupy.name.startswith("cupy-cuda") and cupy.extras == {"ctk"}
    try:
        provided = metadata.metadata(cupy.name).get_all("Provides-Extra")
    except metadata.PackageNotFoundError:
        return
    assert provided is not None and "ctk" in provided


def test_every_sample_says_where_it_comes_from():
    """The text beside them says that all are simulated, and of which license."""
    samples = ROOT / "data_samples"
    text = (samples / "README.md").read_text(encoding="utf-8")
    assert "simulated" in text and "Apache 2.0" in text
    for folder in (p for p in samples.iterdir() if p.is_dir() and p.name != "__pycache__"):
        first, made = (folder / "PROVENANCE.txt").read_text(encoding="utf-8").splitlines()[:2]
        assert "simulated" in first.lower() and made.startswith("Made by: "), folder.name
        assert (f"`{folder.name}`" in text) == made.startswith("Made by: python data_samples/make_samples.py")


def test_the_lowest_versions_are_those_of_every_list():
    """`.ci/lowest` reads each bound as `NAME>=VERSION`."""
    for text in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]:
        assert re.match(r"[\w.-]+(\[\w+\])?(>=|==)[\d.]+", text), text
    assert "SECURITY.md" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8")


def test_package_data_is_complete():
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]
    for package in PACKAGES:
        files = [p.relative_to(ROOT / package).as_posix() for p in (ROOT / package).rglob("*") if p.is_file()]
        data = [f for f in files if not f.startswith("__pycache__/") and not f.endswith((".py", ".pyc"))]
        assert [f for f in data if not any(fnmatch(f, p) for p in patterns[NAMES[package]])] == []
        assert [p for p in patterns[NAMES[package]] if not any(fnmatch(f, p) for f in data)] == [], (
            "patterns of no file"
        )
    for package in PACKAGES:
        folders = {p.parent for p in (ROOT / package).rglob("*.py")}
        assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []


def test_git_ignores_no_source():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "status", "--short", "--ignored=matching", "--untracked-files=all", *PACKAGES, "tests"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in found if line.startswith("!!") and line.endswith((".py", ".cu", ".cuh"))] == []


def run_script(*command):
    """The output of a script of .ci; skip where no index has the packages that it installs."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode and re.search(r"No matching distribution|Could not find a version|Connection", done.stderr):
        pytest.skip("no package index")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_packages_are_accepted_and_run_in_an_empty_environment(tmp_path):
    """`twine check --strict`, `pip check`, an analysis with its report."""
    said = run_script(ROOT / ".ci" / "packages", tmp_path / "dist")
    assert said.count("PASSED") == 2 and said.endswith("the wheel runs in an empty environment\n")
    assert {path.suffix for path in (tmp_path / "dist").iterdir()} == {".whl", ".gz"}


@pytest.mark.slow
def test_the_steps_of_the_image_install_and_run_an_analysis():
    said = run_script(sys.executable, ROOT / ".ci" / "image", "--steps")
    assert f"mmgibbs {mmgibbs.__version__}" in said and said.endswith("the image runs an analysis\n")
