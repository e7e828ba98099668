"""The documentation site: every page is in it, the reference has every key, column and command, it builds strictly."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest
import yaml
from helpers.support import ROOT

import mmgibbs
from mmgibbs import cli
from mmgibbs.config.schema import analysis_schema
from mmgibbs.models.marker_priors import MARKER_PRIORS
from mmgibbs.results.columns import OUTPUTS

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REGRESSIONS = PROJECT["entry-points"]["mmgibbs.models"]


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks):
    return hooks.pages()


@pytest.fixture(scope="module")
def kept():
    """The pages that are kept in docs/, as they are made now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "docs" / "site"), *sys.path])
        import make_pages

        return {path: make() for path, make in make_pages.pages().items()}


def test_pages_made_from_the_sources_are_up_to_date(kept):
    for path, text in kept.items():
        written = (ROOT / "docs" / path).read_text(encoding="utf-8")
        assert written == text, f"{path} is not what the sources say: run python docs/site/make_pages.py"


def test_the_page_of_messages_has_every_kind_and_names_values(kept):
    text = kept["reference/messages.md"]
    assert all(f"| `{kind}` |" in text for kind in ("ConfigError", "DataError", "ModelError", "PedigreeError"))
    assert "\n- sampler.stop.*place*: no parameter fits '*pattern*'; *known*\n" in text  # of an f-string
    assert "- *key*: cannot be combined with prior: *prior*; it belongs to *names*\n" in text  # of a rule
    assert "; `--resume` continues it, `--overwrite` starts again" in text
    assert len(re.findall("^## ", text, re.MULTILINE)) > 10 and text.count("\n- ") > 500


def page_at(path):
    """The part of a page of mkdocs that the hooks read."""
    return SimpleNamespace(file=SimpleNamespace(src_uri=path))


def test_every_page_is_in_the_menu(pages):
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    listed = set(re.findall(r"[\w/.-]+\.md", str(menu)))
    docs = ROOT / "docs"
    notebooks = {p.relative_to(docs).with_suffix(".md").as_posix() for p in docs.rglob("*.ipynb")}
    assert listed == {p.relative_to(docs).as_posix() for p in docs.rglob("*.md")} | notebooks | set(pages)


def test_counts_in_prose_are_right():
    """Priors of SNP effects and regressions, wherever a page counts them."""
    words = dict(enumerate("two three four five six seven eight nine ten".split(), start=2))
    counts = {"priors": len(MARKER_PRIORS), "(?:Bayesian )?regressions": len(REGRESSIONS)}
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for noun, n in counts.items():
        pattern = rf"\b({'|'.join(words.values())}|\d+) (?:\[)?{noun}\b"
        found = [m for page in pages for m in re.findall(pattern, page.read_text(encoding="utf-8"))]
        assert found and set(found) == {words[n]}, noun


def test_the_reference_says_what_every_key_means(kept):
    text = kept["reference/analysis-file.md"]
    schema = analysis_schema()
    for name, section in {"": schema, **schema["$defs"]}.items():
        of_section = text[text.index(f"\n## {name}\n") if name else 0 :]
        mapping = next(s for s in (section, *section.get("anyOf", ())) if "properties" in s)
        for key in mapping["properties"]:
            row = re.search(rf"^\| `{key}` \| (.*?) \| (.*?) \|", of_section, re.MULTILINE)
            assert row is not None and row[2], (name, key)
    assert "| `method` | gibbs: draws from the posterior" in text and '`gibbs`, `blup`, `reml` | `"gibbs"` |' in text
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
    assert len(rows) > 100 and not [key for key, meaning in rows if not meaning.strip()]
    assert "`*` matches any text" in text  # no backslash within code
    assert "In `variances.residual.prior.half_t`, `variances.NAME.prior.half_t`" in text
    assert "frozen" not in text and "e-300" not in text


def test_every_column_command_and_public_name_is_in_the_reference(pages):
    for file, output in OUTPUTS.items():
        assert f"## {file}" in pages["reference/output.md"]
        assert all(f"| `{column}` |" in pages["reference/output.md"] for column in output.columns)
    assert all(f"## mmgibbs {name}\n" in pages["reference/commands.md"] for name in cli._COMMANDS)
    python = pages["reference/python.md"]
    assert all(re.search(rf"^::: [\w.]+\.{name}$", python, re.MULTILINE) for name in mmgibbs.__all__)


def test_links_and_the_first_page(hooks):
    page = page_at("explanation/theory.md")
    source = "[a](../../mmgibbs/cli.py), [b](../../configs/beef.yaml), [c](../../CONTRIBUTING.md#tests), "
    source += "[d](../tutorials/reml.md#x), [e](engines.md), ![f](packages.svg), [g](../notebooks/dairy.ipynb)"
    assert hooks.on_page_markdown(source, page) == (
        "a, [b](../reference/examples.md#beef), [c](../contributing.md#tests), "
        "[d](../tutorials/reml.md#x), [e](engines.md), ![f](packages.svg), [g](../notebooks/dairy.md)"
    )
    page = page_at("README.md")
    text = hooks.on_page_markdown((ROOT / "docs" / "README.md").read_text(encoding="utf-8"), page)
    assert text.startswith("# mmgibbs\n") and "pip install ." in text and "\n## Documentation\n" in text


@pytest.mark.slow
def test_it_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason='needs the extra docs: pip install ".[docs]"')
    pytest.importorskip("mkdocstrings", reason='needs the extra docs: pip install ".[docs]"')
    pytest.importorskip("material", reason='needs the extra docs: pip install ".[docs]"')
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "reference" / "analysis-file" / "index.html").exists() and not (site / "site").exists()
    shutil.rmtree(site)
