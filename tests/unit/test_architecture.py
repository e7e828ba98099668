"""The pages for readers of the source say what the source says."""

import re

import pytest
from helpers.packages_picture import arrows, assign_layers, picture
from helpers.support import ROOT
from unit.test_imports import CORE, PACKAGES

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_of_the_packages_is_that_of_the_table():
    """After a change of the table: python tests/helpers/packages_picture.py"""
    assert (ROOT / "docs" / "explanation" / "packages.svg").read_text(encoding="utf-8") == picture(PACKAGES, CORE)


def test_every_package_has_its_line():
    table = PAGE[PAGE.index("| package |") : PAGE.index("## How data move")]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted({*PACKAGES, "pedigree"})


def test_packages_are_above_what_they_import():
    layer = assign_layers(PACKAGES)
    assert all(layer[package] > layer[other] for package, others in PACKAGES.items() for other in others)


def test_an_arrow_that_follows_from_two_others_is_left_out():
    assert arrows({"a": set(), "b": {"a"}, "c": {"a", "b", "errors"}}) == [("b", "a"), ("c", "b")]


def test_a_change_of_the_table_changes_the_picture():
    assert picture(PACKAGES | {"draws": {"genotypes"}}, CORE) != picture(PACKAGES, CORE)


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
    files = {p.name for folder in ("mmgibbs", "pedigree", "tests", "benchmarks") for p in (ROOT / folder).rglob("*.*")}
    for path in [*(ROOT / "mmgibbs").rglob("*.py"), *(ROOT / "pedigree").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT).as_posix()
        if where == "mmgibbs/runs/cluster/__init__.py":
            continue  # until its modules are renamed
        assert [name for name in page.findall(text) if not (ROOT / name).exists()] == [], where
        assert [name for name in file.findall(text) if name not in files] == [], where
