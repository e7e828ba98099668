"""Exports of farms with everything wrong at once: one message says it all; corrected, they give the clean values."""

import re

import numpy as np
import pytest
import yaml
from helpers.farm_exports import export, write_clean
from helpers.selection import first

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.errors import DataError
from mmgibbs.options import BAD_INPUT

VARIANCES = "variances: {mode: fixed, genetic: 144, residual: 225}\nsampler: {method: blup}\n"


def solve(draft, folder):
    """Id -> breeding value by the drafted model at given variances."""
    text = draft.path.read_text(encoding="utf-8")
    text = text[: text.index("\nsampler:")] + f"\n{VARIANCES}output: {{directory: {folder}}}\n"
    path = draft.path.with_name("blup.yaml")
    path.write_text(text, encoding="utf-8")
    run = mmgibbs.run(path, report=False)
    solutions = run.solutions.filter(run.solutions["term"] == "genetic")
    return dict(zip(solutions["level"], solutions["mean"], strict=True))


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    records, pedigree = write_clean(folder)
    made = mmgibbs.init(records, pedigree=pedigree, traits="weaning_weight", output=folder / "analysis.yaml")
    assert made.refused is None
    model = yaml.safe_load(made.path.read_text())["model"]
    assert set(model["fixed"]) == {"sex", "herd"} and set(model["random"]) == {"genetic"}
    return solve(made, folder / "run")


@pytest.mark.parametrize("language", first(2, ["German", "English", "French"]))
def test_one_message_then_the_values_of_the_clean_tables(language, tmp_path, clean, capsys):
    exported = export(language)
    style = exported.style
    records, pedigree = exported.write(tmp_path)
    options = dict(pedigree=pedigree, output=tmp_path / "analysis.yaml")
    with pytest.raises(DataError) as raised:
        mmgibbs.init(records, **options)
    said = str(raised.value)
    for table, line, wrong, _ in exported.faults:
        assert re.search(rf"row {line}: .*{re.escape(wrong)}", said), (table, line, wrong, said)
    for _, line in exported.deleted:
        assert re.search(rf"row {line}: animal '\d+' has a row already", said), said
    assert not (tmp_path / "analysis.yaml").exists()
    assert main(["init", str(records), "--pedigree", str(pedigree), "--output", str(tmp_path / "a.yaml")]) == BAD_INPUT
    assert said in capsys.readouterr().err

    records, pedigree = exported.correct().write(tmp_path)
    made = mmgibbs.init(records, **options)
    assert made.refused is None, made.refused
    text = made.path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 200 and "ordinal" not in text
    data = yaml.safe_load(text)["data"]
    assert set(data["missing"]) == {"", "NA", *style.missing}
    assert style.unknown in data["unknown_parent"]
    heard = "\n".join(made.said)
    if style.encoding == "windows-1252":
        assert "is not UTF-8 and was read as Windows-1252" in heard
    assert "without a value read past" in heard and "the same as an earlier one of the animal: taken once" in heard
    assert "columns without a name and without a value read past" in heard

    zeros = re.search(r"^  # (weaning_weight: \{missing: \['0'\]\})", text, re.MULTILINE)
    assert zeros, text
    active = re.search(r"^  weaning_weight: .*$", text, re.MULTILINE)
    made.path.write_text(text.replace(active[0], f"  {zeros[1]}"), encoding="utf-8")
    values = solve(made, tmp_path / "run")
    assert values.keys() == clean.keys()
    difference = max(abs(values[i] - clean[i]) for i in clean)
    assert difference <= 1e-9 * np.abs(list(clean.values())).max()
    run = mmgibbs.check(made.path)
    assert run["equations"] > len(clean)
