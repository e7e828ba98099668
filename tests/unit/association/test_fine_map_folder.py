"""The folder of a fine-mapping: what it was made of is checked, and its results take their place together."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from helpers.genotypes import bed_bytes

import mmgibbs
from mmgibbs.association import fine_map
from mmgibbs.cli import main
from mmgibbs.errors import ConfigError, DataError

SHORT = ["sampler={chains: 1, burn_in: 5, samples: 100, thin: 1, seed: 5}"]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of 80 animals, one SNP of which has an effect, its association, and a fine-mapping."""
    folder = tmp_path_factory.mktemp("folder")
    rng = np.random.default_rng(2)
    ids = [f"a{i}" for i in range(80)]
    x = rng.integers(0, 3, (80, 40))
    y = (2.0 * x[:, 7] + rng.normal(size=80)).round(3)
    pl.DataFrame({"animal": ids, "gain": y, "half": y / 2}).write_csv(folder / "records.csv")
    (folder / "g.bed").write_bytes(bed_bytes(x.T.astype(np.int8)))
    bim = [f"1 s{j} 0 {1000 * (j + 1)} A C" for j in range(40)]
    (folder / "g.bim").write_text("\n".join(bim) + "\n")
    (folder / "g.fam").write_text("".join(f"{name} {name} 0 0 0 -9\n" for name in ids))
    mmgibbs.run(analysis_of(folder), directory=folder / "run", progress=False)
    tested = mmgibbs.gwas(folder / "run", output=folder / "gwas", region_width=4000, progress=False)
    assert tested.regions.height
    mmgibbs.finemap(folder / "gwas", folder / "fine", overrides=SHORT, progress=False)
    return folder


def analysis_of(folder, trait="gain"):
    return {
        "data": {"phenotypes": str(folder / "records.csv"), "genotypes": str(folder / "g.bed")},
        "traits": [trait],
        "model": {"random": {"genetic": {"level": "animal", "relationship": "genomic"}}},
        "variances": {"mode": "fixed", "genetic": 0.5, "residual": 1.0},
        "sampler": {"method": "blup"},
    }


@pytest.fixture
def kept(made):
    """Every file is put back after the test."""
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    yield made
    for path in made.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, content in before.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def change_records(folder):
    pl.read_csv(folder / "records.csv").with_columns(pl.col("gain") + 1.0).write_csv(folder / "records.csv")


def replace_run(folder):
    """The folder has the run of another model by now."""
    mmgibbs.run(analysis_of(folder, "half"), directory=folder / "run", overwrite=True, progress=False)


def reverse_animals(folder):
    """A .fam that was reversed gives every animal the genotypes of another, and the .bed is as it was."""
    lines = (folder / "g.fam").read_text().splitlines()
    (folder / "g.fam").write_text("\n".join(reversed(lines)) + "\n")


def move_snp(folder):
    text = (folder / "g.bim").read_text()
    (folder / "g.bim").write_text(text.replace("1 s7 0 8000", "1 s7 0 8001"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_records, r"finemap: the file of data.phenotypes is not the one that '.*run' has read"),
        (replace_run, r"finemap: '.*run' is not the run that '.*gwas' has tested"),
        (reverse_animals, "finemap: .*(g.fam|animals|are not those that|is not the one that)"),
        (move_snp, "finemap: "),
    ],
)
def test_what_has_changed_is_refused(kept, change, message):
    change(kept)
    with pytest.raises((ConfigError, DataError), match=message):
        mmgibbs.finemap(kept / "gwas", kept / "new", overrides=SHORT, progress=False)
    assert not (kept / "new").exists()


def fail(*args, **keys):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failure", ["key", "number of effects", "summary", "disk"])
def test_what_fails_leaves_the_earlier_results(failure, kept, monkeypatch):
    before = contents(kept / "fine")
    how = {"overrides": SHORT, "overwrite": True, "progress": False}
    if failure == "key":
        how["overrides"] = ["sampler.samples=-3"]
    elif failure == "number of effects":
        how["effects"] = 1e9
    elif failure == "summary":
        monkeypatch.setattr(fine_map, "summarise_regions", fail)
    else:
        monkeypatch.setattr("mmgibbs.results.output_folder.write_record", fail)
    with pytest.raises((ConfigError, OSError)):
        mmgibbs.finemap(kept / "gwas", kept / "fine", **how)
    after = {name: text for name, text in contents(kept / "fine").items() if not name.startswith("checkpoint")}
    assert after == before


def test_an_interrupted_one_says_how_to_go_on(kept, monkeypatch, capsys):
    """And continues to the results of one that was not interrupted; the earlier results stay until then."""
    whole = contents(kept / "fine")
    words = ["finemap", str(kept / "gwas"), "--output", str(kept / "fine"), "--set", SHORT[0], "--quiet"]
    with monkeypatch.context() as patched:
        patched.setattr(fine_map, "summarise_regions", lambda *args: exec("raise SystemExit"))  # as if killed
        with pytest.raises(SystemExit):
            mmgibbs.finemap(kept / "gwas", kept / "fine", overrides=SHORT, overwrite=True, progress=False)
    now = contents(kept / "fine")
    assert {name: now[name] for name in whole} == whole and "checkpoint/draft.json" in now
    assert main(words) == 2
    assert "holds a fine-mapping that is not finished; --resume continues it" in capsys.readouterr().err
    assert main([*words, "--set", "sampler.seed=6", "--resume"]) == 2
    assert "holds a fine-mapping of another overrides; needed the same" in capsys.readouterr().err
    assert main([*words, "--resume"]) in (0, None), capsys.readouterr().err
    again = contents(kept / "fine")
    assert again.keys() == whole.keys()
    for name in ("fine_map.csv", "credible_sets.csv", "analysis.yaml", "snps.csv", "run/summary.csv"):
        assert again[name] == whole[name], name
    assert main([*words, "--resume"]) in (0, None)  # finished: it is shown again
    assert contents(kept / "fine") == again


def test_the_run_of_a_fine_mapping_names_its_files_where_they_are(made):
    record = json.loads((made / "fine" / "run" / "run.json").read_text())
    file = record["analysis"]["model"]["markers"]["regions"]["snps"]["file"]
    assert file == str(made / "fine" / "snps.csv")
    assert record["analysis"]["output"]["directory"] == str(made / "fine" / "run")
    assert mmgibbs.open_run(made / "fine" / "run").info["files"] == record["files"]
    assert sorted(p.name for p in (made / "fine").iterdir()) == [
        "analysis.yaml", "credible_sets.csv", "fine_map.csv", "fine_map.parquet", "finemap.json", "run", "snps.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["notes.txt", "run/notes.txt", "checkpoint/notes.txt", "run/.writing/notes.txt", ".writing/run/notes.txt"]
)
def test_files_of_the_user_are_not_removed(name, kept):
    (kept / "fine" / name).parent.mkdir(parents=True, exist_ok=True)
    (kept / "fine" / name).write_text("mine")
    before = contents(kept / "fine")
    with pytest.raises(ConfigError, match=rf"holds other files \({name}\)"):
        mmgibbs.finemap(kept / "gwas", kept / "fine", overrides=SHORT, overwrite=True, progress=False)
    assert contents(kept / "fine") == before
    for made in ("checkpoint", ".writing", "run/.writing"):
        shutil.rmtree(kept / "fine" / made, ignore_errors=True)
