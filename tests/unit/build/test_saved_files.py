"""`output.save_levels: {TERM: {file: PATH}}`: draws of the levels that a file names, and what is refused of it."""

import json

import numpy as np
import polars as pl
import pytest
import yaml

import mmgibbs
from mmgibbs.errors import ConfigError
from mmgibbs.runs.fingerprint import fingerprint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("saved"), np.random.default_rng(2)
    pedigree = pl.DataFrame(
        {"id": [f"a{i}" for i in range(12)], "sire": ["0"] * 6 + ["a0"] * 6, "dam": ["0"] * 6 + ["a1"] * 6}
    )
    pedigree.write_csv(folder / "pedigree.csv")
    pedigree.select("id", y=pl.Series(rng.normal(size=12))).write_csv(folder / "records.csv")
    return folder


def analysis(folder, saved):
    tree = {
        "data": {"phenotypes": "records.csv", "pedigree": "pedigree.csv"},
        "traits": ["y"],
        "model": {"random": {"genetic": {"level": "id", "relationship": "pedigree"}}},
        "sampler": {"chains": 1, "burn_in": 2, "samples": 10, "thin": 1, "seed": 1},
        "output": {"save_levels": saved, "directory": str(folder / "run")},
    }
    (folder / "analysis.yaml").write_text(yaml.safe_dump(tree))
    return folder / "analysis.yaml"


def write(folder, text):
    (folder / "names.txt").write_text(text)


def test_draws_of_the_levels_of_a_file_are_kept(folder):
    write(folder, 'id\na3\n\n  a11 \n"a0"\n')
    path = analysis(folder, {"genetic": {"file": "names.txt"}})
    run = mmgibbs.run(path, progress=False)
    assert run.draws["/posterior"]["genetic_level"].values.tolist() == ["a3", "a11", "a0"]
    recorded = json.loads((run.directory / "run.json").read_text())["analysis"]["output"]["save_levels"]
    assert recorded == {"genetic": {"file": str(folder / "names.txt")}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a3\nx1\na4\nx2\nx3\nx4\nx5\nx6\n",
            r"output.save_levels.genetic.file: '.*names.txt': found 'x1' \(row 2\), 'x2' \(row 4\), .* and \d more, "
            r"needed names among the 12 levels of genetic; 6 of 8 are none of these",
        ),
        (
            "id\nA3\n",
            r"found 'A3' \(row 2\), .*; 1 of 1 are none of these. genetic has 1 of 1 such id in another spelling",
        ),
        ("id,sex\na3,M\n", r"'a3,M' \(row 2\) \(a line has one id and no other columns\)"),
        ("a3\na4\na3\n", "found 'a3' twice, in rows 1 and 3, needed every level once"),
        ("\n\n", "found no id, needed one id per line"),
    ],
)
def test_names_that_are_no_levels_are_said_with_their_rows(folder, text, message):
    write(folder, text)
    with pytest.raises(ConfigError, match=message):
        mmgibbs.check(analysis(folder, {"genetic": {"file": "names.txt"}}))


@pytest.mark.parametrize("ids", [{"fil": "names.txt"}, {"file": ""}, {"file": "names.txt", "row": 1}])
def test_another_mapping_is_refused(folder, ids):
    with pytest.raises(ConfigError, match=r"save_levels.genetic: found .*needed a list of ids, \{file: PATH\}"):
        mmgibbs.check(analysis(folder, {"genetic": ids}))


def test_other_names_are_another_analysis(folder):
    """A run is not continued with other levels than it began with."""
    from mmgibbs.data.traits import load_analysis

    path, found = analysis(folder, {"genetic": {"file": "names.txt"}}), []
    for text in ("a3\n", "a4\n"):
        write(folder, text)
        found.append(fingerprint(load_analysis(path))["files"])
    key = "output.save_levels.genetic.file"
    assert found[0][key] != found[1][key]
