"""Files of a finished run that are damaged, exchanged or gone: one line that names the file, or the right values.

Never a traceback, and never other values in silence.
"""

import dataclasses
import json
import os
import random
import shutil

import numpy as np
import polars as pl
import pytest
from helpers.genotypes import write_plink
from helpers.selection import first

import mmgibbs
from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError
from mmgibbs.report import method_words
from mmgibbs.report.findings import remarks, warnings
from mmgibbs.report.finished import read_finished
from mmgibbs.report.page import count_coefficients, facts, list_files, model_section, subtitle, traits_with_intercept
from mmgibbs.results.checksums import CHECKSUMS, OF_RECORD, record_with_checksum
from mmgibbs.results.reading import read_record
from mmgibbs.runs.starts import read_starts

N, SNPS, YOUNG = 60, 24, 10
IDS = [f"a{i}" for i in range(N)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    rng, folder = np.random.default_rng(2), tmp_path_factory.mktemp("tables")
    codes = rng.binomial(2, rng.uniform(0.3, 0.7, SNPS)[:, None], (SNPS, N)).astype(np.uint8)
    places = [1 + j // 12 for j in range(SNPS)], [1000 * (j + 1) for j in range(SNPS)]
    write_plink(folder / "chips.bed", codes, IDS, [f"rs{j}" for j in range(SNPS)], *places)
    parents = lambda first: [None] * 20 + [IDS[first + i % 10] for i in range(N - 20)]
    pedigree = pl.DataFrame(
        {"id": IDS, "sire": parents(0), "dam": parents(10), "birth": [2000 + i // 6 for i in range(N)]}
    )
    y = codes[:4].sum(axis=0) + rng.standard_normal(N)
    phenotypes = pl.DataFrame({"animal": IDS, "milk": y}).head(N - YOUNG)
    return phenotypes, pedigree, folder / "chips.bed"


def analysis_of(tables, directory, seed):
    phenotypes, pedigree, genotypes = tables
    return {
        "name": "cows",
        "data": {"phenotypes": phenotypes, "pedigree": pedigree, "genotypes": {"file": str(genotypes)}},
        "traits": ["milk"],
        "model": {
            "random": {"genetic": {"relationship": "pedigree", "level": "animal"}},
            "markers": {"snps": {"prior": "bayes_r", "windows": {"snps": 4}}},
        },
        "decisions": {"candidates": {"born_after": 2005}, "top": [10]},
        "sampler": {"chains": 2, "burn_in": 10, "samples": 40, "thin": 1, "seed": seed, "checkpoint_every": "never"},
        "output": {"directory": str(directory)},
    }


def run(tables, directory, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgibbs.runs.local.cores", lambda: 1)
        return mmgibbs.run(analysis_of(tables, directory, seed), progress=False).directory


@pytest.fixture(scope="module")
def good(tables, tmp_path_factory):
    return run(tables, tmp_path_factory.mktemp("good") / "run", 1)


@pytest.fixture(scope="module")
def other(tables, tmp_path_factory):
    return run(tables, tmp_path_factory.mktemp("other") / "run", 2)


@pytest.fixture
def copy(good, tmp_path):
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


# ------------------------------------------------------------------------------------------------ what is asked


def opened(folder, tables):
    result = mmgibbs.open_run(folder)
    frames = [result.summary, result.solutions, result.decisions, result.response]
    draws = [v.values for node in result.draws.subtree for _, v in sorted(node.data_vars.items())]
    info = {k: v for k, v in result.info.items() if k not in (CHECKSUMS, OF_RECORD)}
    return [frame.write_json() for frame in frames], [d.tobytes() for d in draws], info


def finished(folder, tables):
    run = read_finished(folder)
    frames = (run.summary, run.solutions, run.animals, run.decisions, run.response, run.markers, run.windows,
              run.chromosomes, run.genotyped)  # fmt: skip
    texts = [None if f is None else f.write_json() for f in frames]
    return texts, {k: v.tobytes() for k, v in run.draws.items()}, run.marker_draws, sorted(run.trends)


def predicted(folder, tables):
    return mmgibbs.predict(folder, tables[2]).values.write_json()


def compared(folder, tables):
    return mmgibbs.compare(folder, folder.parent / "good").text


def started(folder, tables):
    """The variances of the run, from which `validate --variances` starts."""
    return read_starts(folder, load_config(analysis_of(tables, "validated", 1)))


ASKED = {"open_run": opened, "report": finished, "predict": predicted, "compare": compared, "variances": started}


# ------------------------------------------------------------------------------------------------ damages


def cut(content, rng):
    return content[: len(content) // 2]


def emptied(content, rng):
    return b""


def lengthened(content, rng):
    return content + b"\0"


def flipped(content, rng):
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


RESULTS = (
    "run.json summary.parquet solutions.parquet draws.nc animals.parquet decisions.parquet response.parquet "
    "markers.parquet marker_draws.npz windows.parquet chromosomes.csv"
).split()
NOT_READ = ("summary.csv", "solutions.csv", "decisions.csv", "response.csv")
DAMAGES = [cut, emptied, lengthened, *[flipped] * 3]


def outcome(ask, folder, tables):
    try:
        return ask(folder, tables)
    except ConfigError as error:
        return error


def assert_one_line_or_right(found, right, name):
    if isinstance(found, ConfigError):
        message = str(found)
        assert "\n" not in message and name in message and message.isprintable(), message
    else:
        assert found == right


def test_the_files_are_those_that_are_damaged(good):
    """So that a new file of a run is damaged here too."""
    assert {path.name for path in good.iterdir()} == {*RESULTS, *NOT_READ, "run.log"}


PAIRS = [(name, asked) for j, name in enumerate(RESULTS) for i, asked in enumerate(ASKED) if (i + j) % 4 == 0]


@pytest.mark.parametrize("name, asked", first(8, PAIRS))
def test_a_damaged_file_is_named_or_changes_nothing(name, asked, copy, good, tables):
    shutil.copytree(good, copy.parent / "good")
    right, rng, content = ASKED[asked](copy, tables), random.Random(name + asked), (good / name).read_bytes()
    refused = 0
    for damage in DAMAGES:
        (copy / name).write_bytes(damage(content, rng))
        found = outcome(ASKED[asked], copy, tables)
        assert_one_line_or_right(found, right, name)
        refused += isinstance(found, ConfigError)
    (copy / name).unlink()
    found = outcome(ASKED[asked], copy, tables)
    assert_one_line_or_right(found, right, str(copy) if name == "run.json" else name)
    if name == "summary.parquet" or (asked == "report" and name not in ("marker_draws.npz", "run.json")):
        assert refused == len(DAMAGES) and isinstance(found, ConfigError)
    (copy / name).write_bytes(content)
    assert ASKED[asked](copy, tables) == right


@pytest.mark.parametrize("name", ["summary.parquet", "draws.nc", "marker_draws.npz", "run.json"])
def test_a_file_of_another_run_is_named(name, copy, good, other, tables):
    """Of the same analysis, so that all names and sizes of tables fit."""
    shutil.copytree(good, copy.parent / "good")
    rights = [ask(copy, tables) for ask in ASKED.values()]
    shutil.copy(other / name, copy / name)
    for ask, right in zip(ASKED.values(), rights, strict=True):
        found = outcome(ask, copy, tables)
        if isinstance(found, ConfigError):
            assert name in str(found) or name == "run.json", found
            assert "\n" not in str(found)
        else:
            assert found == right


def test_a_file_that_the_run_did_not_write_is_no_result(copy, tables):
    """Beside it may lie what someone else has put there."""
    right = finished(copy, tables)
    shutil.copy(copy / "animals.parquet", copy / "predicted_classes.parquet")
    assert finished(copy, tables) == right


def test_a_csv_may_be_edited(copy, tables):
    """Spreadsheets save them otherwise; the program reads the parquet files."""
    right = finished(copy, tables), opened(copy, tables)
    for name in NOT_READ:
        (copy / name).write_text("edited")
    assert (finished(copy, tables), opened(copy, tables)) == right


@pytest.mark.parametrize(
    "words",
    [
        "report RUN GOOD --output page.html",
        "compare GOOD RUN",
        "predict RUN CHIPS",
        "export --format blupf90 RUN",
    ],
)
def test_commands_end_with_one_line(words, copy, good, tables, capsys, monkeypatch):
    monkeypatch.chdir(copy.parent)
    content = (copy / "solutions.parquet").read_bytes()
    (copy / "solutions.parquet").write_bytes(flipped(content, random.Random(3)))
    places = {"RUN": str(copy), "GOOD": str(good), "CHIPS": str(tables[2])}
    before = sorted(os.listdir(copy.parent))
    assert main([places.get(word, word) for word in words.split()]) == 2
    out, said = capsys.readouterr()
    path = copy / "solutions.parquet"
    assert out == "" and said.count("\n") == 1
    assert said.startswith(
        f"{words.split()[0]}: '{path}' is damaged or was changed: its checksum is not that in run.json"
    )
    assert "--resume" in said and sorted(os.listdir(copy.parent)) == before


def test_resume_writes_damaged_results_again(tables, tmp_path, capsys):
    """A finished run is left as it is, but for results that are damaged: those come from the checkpoints."""
    text = {"directory": str(tmp_path / "run")}
    analysis = {
        "data": {"phenotypes": tables[0], "pedigree": tables[1]},
        "traits": ["milk"],
        "model": {"random": {"genetic": {"relationship": "pedigree", "level": "animal"}}},
        "sampler": {"chains": 1, "burn_in": 10, "samples": 40, "thin": 1, "seed": 3},
        "output": text,
    }
    first = mmgibbs.run(analysis, progress=False)
    assert "nothing is left to do" not in capsys.readouterr().err
    mmgibbs.run(analysis, resume=True, progress=True)
    assert "nothing is left to do" in capsys.readouterr().err
    for name in ("solutions.parquet", "run.json"):
        (first.directory / name).write_bytes((first.directory / name).read_bytes()[:-9])
        again = mmgibbs.run(analysis, resume=True, progress=False)
        assert again.solutions.equals(first.solutions) and again.summary.equals(first.summary)
        assert mmgibbs.open_run(first.directory).solutions.equals(first.solutions)


# ------------------------------------------------------------------------------------------------ from someone else


def written(folder, change, checksum=True):
    record = json.loads((folder / "run.json").read_text())
    change(record)
    if checksum:
        record = record_with_checksum(record)
    else:
        record.pop(CHECKSUMS), record.pop(OF_RECORD)
    (folder / "run.json").write_text(json.dumps(record))


def leaves(value, place=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*place, i))
    else:
        yield place, value


def replace_leaf(record, place, value):
    for key in place[:-1]:
        record = record[key]
    record[place[-1]] = value


def words_of_page(run):
    """All that a page says of run.json; its figures take seconds."""
    remarks(run), warnings(run), facts(run.record), subtitle(run.record), list_files(run)
    model_section(run.record, count_coefficients(run), traits_with_intercept(run))
    method_words.values_words(run.record, True, True, "none")


@pytest.mark.parametrize("value", first(2, ["many", None, {}, -1]))
def test_words_about_a_record_with_other_values_are_made_or_refused_in_one_line(value, copy):
    content, run = (copy / "run.json").read_bytes(), read_finished(copy)
    places = [place for place, _ in leaves(json.loads(content)) if place[0] not in (CHECKSUMS, OF_RECORD)]
    for place in places:
        record = json.loads(content)
        replace_leaf(record, place, value)
        (copy / "run.json").write_text(json.dumps(record_with_checksum(record)))
        try:
            words_of_page(dataclasses.replace(run, record=read_record(copy)))
        except ConfigError as error:
            assert "\n" not in str(error) and str(place[0]) in str(error), error
        except Exception as error:
            raise AssertionError(f"{place}: {value!r}") from error


def test_a_run_without_checksums_is_read_as_before(copy, good, tables):
    right = finished(good, tables)
    written(copy, lambda record: None, checksum=False)
    assert finished(copy, tables) == right


def test_a_link_to_a_file_that_is_not_of_the_run_is_refused(copy, good, tables):
    """Without checksums nothing says what the file should hold; with them, a link to the same content is fine."""
    right = finished(good, tables)
    (copy / "solutions.parquet").unlink()
    (copy / "solutions.parquet").symlink_to(good / "solutions.parquet")
    assert finished(copy, tables) == right
    written(copy, lambda record: None, checksum=False)
    with pytest.raises(ConfigError, match=r"solutions.parquet' is a link, and run.json has no checksum"):
        read_finished(copy)


@pytest.mark.parametrize("kind", ["external storage", "external link", "soft link", "virtual dataset"])
def test_draws_that_are_stored_elsewhere_are_refused(kind, copy, tmp_path):
    import h5py

    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(80.0).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(80.0).reshape(2, 40)
    with h5py.File(copy / "draws.nc", "a") as file:
        group, like = file["posterior"], file["posterior/h2[milk]"]
        if kind == "external storage":
            group.create_dataset("x", like.shape, float, external=[(str(secret), 0, 640)])
        elif kind == "external link":
            group["x"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")
        elif kind == "soft link":
            group["x"] = h5py.SoftLink("/posterior/h2[milk]")
        else:
            layout = h5py.VirtualLayout(like.shape, float)
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", like.shape)
            group.create_virtual_dataset("x", layout)
    written(copy, lambda record: None, checksum=False)
    for ask in (read_finished, lambda folder: mmgibbs.open_run(folder).draws):
        with pytest.raises(ConfigError, match=r"draws.nc': 'posterior/x' takes its values from elsewhere"):
            ask(copy)


def test_groups_that_contain_each_other_end(copy):
    import h5py

    with h5py.File(copy / "draws.nc", "a") as file:
        for name in ("a", "b", "c"):
            file[f"posterior/{name}"] = file["posterior"]
    written(copy, lambda record: None, checksum=False)
    assert isinstance(outcome(lambda folder, _: read_finished(folder), copy, None), object)
