"""A good small analysis in files, run through the command line in this process: what tests of bad input spoil."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.models.design import Design
from mmgibbs.results.folder import LOCK

PEDIGREE = """\
id,sire,dam
s1,0,0
s2,0,0
d1,0,0
d2,0,0
d3,0,0
c1,s1,d1
c2,s1,d2
c3,s2,d3
c4,s2,d1
c5,s1,d3
"""
PHENOTYPES = """\
animal,herd,sex,age,weight,birth_weight,weaning_weight
c1,north,F,180,1,35.5,201.5
c2,north,M,190,2,41.0,240.0
c3,south,F,200,1,33.25,NA
c4,south,M,170,1,39.0,215.0
c5,south,F,210,0.5,36.0,222.5
d1,north,F,185,1,NA,199.0
d2,south,F,195,1,34.0,
d3,north,F,175,1,NA,NA
"""
ANALYSIS = """\
name: calves
data: {phenotypes: phenotypes.csv, pedigree: pedigree.csv, weights: weight}
traits: [birth_weight, weaning_weight]
model:
  fixed:
    herd: {}
    sex: {}
    age: {kind: covariate, traits: [weaning_weight]}
  random:
    genetic: {relationship: pedigree, level: animal}
variances:
  genetic: [[6, 8], [8, 90]]
  residual: [[9, 10], [10, 160]]
sampler: {method: blup}
output: {directory: run}
"""
FILES = {"analysis.yaml": ANALYSIS, "pedigree.csv": PEDIGREE, "phenotypes.csv": PHENOTYPES}
READ, USED = 8, 7  # records


def with_proper_priors(text: str) -> str:
    """An analysis that samples variances: few records under flat priors leave no posterior."""
    for matrix in ("[[6, 8], [8, 90]]", "[[9, 10], [10, 160]]"):
        text = replaced(text, f": {matrix}\n", f": {{start: {matrix}, prior: {{df: 5, scale: {matrix}}}}}\n")
    return text


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str
    folder: Path

    @property
    def record(self) -> dict:
        return json.loads((self.folder / "run" / "run.json").read_text(encoding="utf-8"))

    @property
    def solutions(self) -> pl.DataFrame:
        return pl.read_parquet(self.folder / "run" / "solutions.parquet")

    @property
    def summary(self) -> pl.DataFrame:
        return pl.read_parquet(self.folder / "run" / "summary.parquet")


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the good file"
    return text.replace(old, new)


def altered(file: str, old: str, new: str) -> dict[str, str]:
    """One of the good files with a change, for `write_files`."""
    return {file: replaced(FILES[file], old, new)}


def write_files(folder: Path, changed: dict[str, str | bytes | None] | None = None) -> None:
    """The good files, those in `changed` in place of theirs; None: not written."""
    folder.mkdir(exist_ok=True)
    for name, content in (FILES | (changed or {})).items():
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def small_design(folder: Path) -> tuple[Design, list[np.ndarray | None], np.ndarray]:
    """The design of the files, and the variances G per term (None: fixed) and R that the analysis gives."""
    write_files(folder)
    design = prepare(load_config(folder / "analysis.yaml")).design
    G = [np.array([[6.0, 8.0], [8.0, 90.0]]) if t.kind == "random" else None for t in design.terms]
    return design, G, np.array([[9.0, 10.0], [10.0, 160.0]])


def command(folder: Path, *arguments: str) -> Outcome:
    """`mmgibbs ARGUMENTS` with the folder as the working directory."""
    before = Path.cwd()
    out, err = io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, *(["--no-report"] if arguments[:1] == ("run",) else [])])
    finally:
        os.chdir(before)
    return Outcome(code, out.getvalue(), err.getvalue(), folder)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file, folder, link and pipe below a folder, hidden ones too, and the bytes of files."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() and not p.is_symlink() else None
        for p in sorted(folder.rglob("*"))
    }


def refused(folder: Path, *arguments: str, run: tuple[str, ...] = ("run", "analysis.yaml", "--quiet")) -> str:
    """The message of a run that must be refused: exit code 2, readable, nothing written anywhere.

    The lock that a killed run has left may go.
    """
    before = contents(folder)
    outcome = command(folder, *run, *arguments)
    assert outcome.code == 2, (outcome.code, outcome.err)
    assert outcome.out == "" and outcome.err.strip(), outcome
    assert_readable(outcome.err)
    after = contents(folder)
    locks = {name for name in before.keys() - after.keys() if Path(name).name == LOCK}
    assert after == {name: content for name, content in before.items() if name not in locks}
    return outcome.err.strip()


JARGON = (
    "Traceback",
    'File "',
    "Warning:",
    "Error:",
    "polars",
    "pydantic",
    "numpy",
    "numba",
    "<class",
    "NoneType",
    "dtype",
    "schema",
    "None",
    "object at 0x",
)


def assert_readable(message: str) -> None:
    """A few printable lines of moderate length for each thing, in words that a breeder knows."""
    lines = message.strip().splitlines()
    several = re.match(r"found (\d+) things that must be changed:", message)
    assert 0 < len(lines) <= (8 if several is None else 1 + 5 * int(several[1])), message
    for line in lines:
        assert len(line) <= 500 and line.isprintable(), line
    assert not any(word in message for word in JARGON), message
