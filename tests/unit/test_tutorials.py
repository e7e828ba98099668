"""The tutorials do what they say: their files, commands and Python as written, and what they show is what comes out.

Marks stand above the code blocks: `file: NAME` is written, `holds: NAME` is what a file holds by then, `run` is run,
`shows` must be among what the runs since the last mark said, and so must `shows with all sweeps` where the chains are
not cut short. An ellipsis stands for anything. Types of CPU differ in the last bits of a draw, so that a mean of whole
chains may differ by one in the last digit shown.
"""

import contextlib
import io
import re
import shlex
import tomllib

import pytest
from helpers.selection import first
from helpers.support import ROOT

from mmgibbs.cli import _parser, main

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*/*.md"))
TUTORIALS = [p for p in PAGES if "<!-- run -->" in p.read_text(encoding="utf-8")]
WITH_ALL_SWEEPS = [p for p in TUTORIALS if "<!-- shows with all sweeps" in p.read_text(encoding="utf-8")]
BLOCK = re.compile(
    r"^<!-- (file|holds|run|shows with all sweeps|shows)(?:: (\S+))? -->\n```(\w*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?!,?[\w.…])")  # whole, not one that an ellipsis goes on with
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHORT = ("chains=1", "burn_in=10", "samples=20", "thin=2", "threads=1")


class Reader:
    """Does what a tutorial says, in the folder where it stands."""

    def __init__(self, folder, monkeypatch, short):
        self.folder, self.monkeypatch, self.short = folder, monkeypatch, short
        self.names, self.said = {"__name__": "tutorial"}, ""

    def read(self, text):
        blocks, heard = BLOCK.findall(text), False
        assert len(blocks) == text.count("\n<!-- ") and any(kind == "run" for kind, *_ in blocks)
        for kind, name, language, code in blocks:
            if kind == "file":
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(code)
            elif kind == "holds":
                assert (self.folder / name).read_text() == code
            elif kind == "run":
                if heard:
                    self.said, heard = "", False
                self.run(language, code)
            else:
                heard = True
                if kind == "shows" or not self.short:
                    self.compare(code, of_chains=kind != "shows")

    def run(self, language, code):
        spoken = io.StringIO()
        with contextlib.redirect_stdout(spoken), contextlib.redirect_stderr(spoken):
            if language == "python":
                exec(compile(code, "tutorial", "exec"), self.names)
            else:
                for line in code.replace("\\\n", " ").splitlines():
                    self.command(shlex.split(line, comments=True))
        self.said += spoken.getvalue()

    def command(self, words):
        if words[:2] == ["pip", "install"]:
            self.install(self.folder / words[2])
            return
        assert words[0] == "mmgibbs"
        if words[1] == "run" and self.short:
            words.append("--no-report")
            words += [word for setting in SHORT for word in ("--set", f"sampler.{setting}")]
            words = ["20" if before == "--extend" else word for before, word in zip(["", *words], words)]
        assert main(words[1:]) == 0

    def install(self, package):
        """What pip would do with a package of modules beside its pyproject.toml."""
        project = tomllib.loads((package / "pyproject.toml").read_text())
        info = package / f"{project['project']['name'].replace('-', '_')}-{project['project']['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['project']['name']}\nVersion: 1.0\n")
        groups = project["project"]["entry-points"].items()
        lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups]
        (info / "entry_points.txt").write_text("".join(lines))
        assert all((package / f"{module}.py").exists() for module in project["tool"]["setuptools"]["py-modules"])
        self.monkeypatch.syspath_prepend(str(package))

    def compare(self, shown, of_chains=False):
        said = [" ".join(line.split()) for line in self.said.splitlines()]
        for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
            numbers = NUMBER.findall(line) if of_chains else []
            wanted = re.compile(f"({NUMBER.pattern})".join(map(pattern, NUMBER.split(line) if numbers else [line])))
            found = (match.groups() for match in map(wanted.search, said) if match)
            assert any(all(map(alike, numbers, own)) for own in found), f"{line!r} is not among:\n" + "\n".join(said)


def pattern(text):
    """The regular expression of text with ellipses."""
    return r"\s*.*\s*".join(re.escape(part) for part in re.split(r"\s*…\s*", text))


def alike(shown, found):
    """Equal, or with as many digits after the point, and one apart in the last of them."""
    decimals, others = (len(number.partition(".")[2]) for number in (shown, found))
    a, b = (float(number.replace(",", "")) for number in (shown, found))
    return decimals == others and abs(a - b) * 10**decimals < 1.01


@pytest.fixture
def reader(tmp_path, monkeypatch):
    for name in ("configs", "data_samples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return lambda short: Reader(tmp_path, monkeypatch, short)


@pytest.mark.parametrize("path", first(3, TUTORIALS), ids=lambda p: p.stem)
def test_tutorial_runs_with_short_chains(path, reader):
    reader(short=True).read(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_ALL_SWEEPS, ids=lambda p: p.stem)
def test_tutorial_runs_as_written(path, reader):
    reader(short=False).read(path.read_text(encoding="utf-8"))


def test_index_names_every_page_and_links_lead_somewhere():
    for page in (DOCS / "README.md", *PAGES):
        links = [link for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")) if "://" not in link]
        assert all((page.parent / link).exists() for link in links), page
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    assert all(f"]({p.relative_to(DOCS).as_posix()})" in index for p in PAGES) and len(TUTORIALS) == 21


def test_commands_of_the_other_pages_are_accepted():
    blocks = [block for p in PAGES if p not in TUTORIALS for block in SHELL.findall(p.read_text(encoding="utf-8"))]
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("mmgibbs ")]
    assert lines
    for words in (shlex.split(line, comments=True)[1:] for line in lines):
        assert _parser(words).parse_args(words)
