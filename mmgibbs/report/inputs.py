"""The files that a run read, by what they are, with how many rows of each where run.json knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mmgibbs.report.html_tables import counted

MARKS = "./\\"  # every path of a relationship contains one of these; no name of a kind does
FRAME = "data frame of "  # what stands for a table from Python, with its rows
FREQUENCIES = ("genotyped", "recorded", "half", "base")  # of alleles, that are no path


def input_files(record: Mapping[str, Any]) -> dict[str, str]:
    """List the input files: use -> name and rows; files of one use in one text.

    Folders, which say where on a machine a file lay, are left out.
    """
    uses: dict[str, list[str]] = {}
    for what, path, rows in _files(record):
        text = re.split(r"[/\\]", path)[-1] + (f", {rows}" if rows and not path.startswith(FRAME) else "")
        if text not in uses.setdefault(what, []):
            uses[what].append(text)
    return {what: "; ".join(texts) for what, texts in uses.items()}


def _files(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(what it is, path, rows in words or '')."""
    analysis, data = record.get("analysis", {}), record.get("data", {})
    tables, model = analysis.get("data", {}), analysis.get("model", {})
    if tables.get("phenotypes"):
        read = data.get("records", {}).get("read")
        yield "Phenotype file", str(tables["phenotypes"]), "" if read is None else counted(read, "row")
    if tables.get("pedigree") and ("animals" in data or "records" not in data):  # without effects of it it is not read
        named = data["animals"] - data.get("founders_added", 0) if "animals" in data else None
        yield "Pedigree file", str(tables["pedigree"]), "" if named is None else counted(named, "animal")
    yield from _describe_genotypes(tables.get("genotypes") or {}, data.get("genotypes", {}))
    gamma = (tables.get("groups") or {}).get("gamma")
    if isinstance(gamma, str) and gamma != "genotypes":
        yield "Gamma file", gamma, counted(data["groups"], "group") if data.get("groups") else ""
    for term, random in (model.get("random") or {}).items():
        levels = record.get("levels", {}).get(term)
        yield from _describe_relationship(
            random.get("relationship"), "" if levels is None else counted(levels, "level")
        )
    for markers in (model.get("markers") or {}).values():
        chosen = markers.get("snps")
        if isinstance(chosen, Mapping) and chosen.get("file"):
            yield "File of chosen SNPs", str(chosen["file"]), ""
    known = ((analysis.get("variances") or {}).get("residual") or {}).get("known") or {}
    files = known.get("files") or ()
    for path in files.values() if isinstance(files, Mapping) else files:
        yield "Covariances of means", str(path), ""
    candidates = (analysis.get("decisions") or {}).get("candidates")
    if isinstance(candidates, Mapping) and candidates.get("file"):
        candidate_files = record.get("decisions", {}).get("candidates")
        yield (
            "Candidate file",
            str(candidates["file"]),
            "" if candidate_files is None else counted(candidate_files, "candidate"),
        )


def _describe_genotypes(section: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    read = counts.get("read", {})
    snps, animals = (counted(read[key], key[:-1]) if key in read else "" for key in ("SNPs", "animals"))
    if section.get("file"):
        yield "Genotype file", str(section["file"]), f"{snps} of {animals}" if snps and animals else ""
    if section.get("map"):
        yield "SNP map", str(section["map"]), ""
    if section.get("animals"):
        yield "File of genotyped animals", str(section["animals"]), animals
    yield from _describe_frequencies(section.get("frequencies"))


def _describe_frequencies(written: object) -> Iterator[tuple[str, str, str]]:
    if isinstance(written, str) and written not in FREQUENCIES:
        yield "File of allele frequencies", written, ""


def _describe_relationship(written: object, levels: str) -> Iterator[tuple[str, str, str]]:
    """A word, a path, or a mapping with a kind; levels: of the term, 'counted'."""
    if isinstance(written, str) and any(mark in written for mark in MARKS):
        yield "Relationship file", written, levels
    if isinstance(written, Mapping):
        if written.get("kind") == "file" and written.get("file"):
            yield "Relationship file", str(written["file"]), levels
        yield from _describe_frequencies(written.get("frequencies"))
        core = written.get("core")
        if isinstance(core, Mapping) and core.get("file"):
            yield "File of the core", str(core["file"]), ""
