"""Residual classes from the analysis file to the summary: names, starts, priors, what is refused, other commands."""

import json

import numpy as np
import pytest
from helpers.shared_runs import copy_of_run
from helpers.support import ROOT

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ConfigError, DataError, ModelError
from mmgibbs.runs.run import check

RECORDS = """animal,herd,housing,gain,fat
a,1,indoor,10,2.0
b,1,indoor,12,2.5
c,2,indoor,9,1.5
d,2,outdoor,14,
e,1,outdoor,8,
f,2,outdoor,11,
g,1,indoor,13,2.2
h,2,outdoor,7,
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "growth.csv").write_text(RECORDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def analysis(traits=("gain",), residual=None, genetic=2.0, **more):
    k = len(traits)
    start = genetic if k == 1 else (np.eye(k) * genetic).tolist()
    prior = {"df": 6, "scale": 4.0 if k == 1 else (4 * np.eye(k)).tolist()}
    return {
        "name": "pens",
        "data": {"phenotypes": "growth.csv"},
        "traits": list(traits),
        "model": {"fixed": {"herd": {}}, "random": {"animal": {"level": "animal"}}},
        "variances": {"animal": {"start": start, "prior": prior}, "residual": residual or {"by": "housing"}},
        "sampler": {"chains": 1, "burn_in": 5, "samples": 20, "seed": 1},
        "output": {"directory": "run"},
    } | more


PRIOR = {"df": 5, "scale": 6.0}


def test_starts_and_priors_of_a_class_go_before_those_of_all(folder):
    own = {"start": 9.0, "prior": {"df": 8, "scale": 3}}
    loaded = load_config(analysis(residual={"by": "housing", "start": 4, "prior": PRIOR, "classes": {"outdoor": own}}))
    written = loaded.resolved()["variances"]["residual"]
    assert written["by"] == "housing" and list(written["classes"]) == ["outdoor"]
    assert written["classes"]["outdoor"] == {
        "start": [[9.0]],
        "fixed": False,
        "prior": {"df": 8.0, "scale": [[3.0]]},
    }
    residual = assemble(loaded, prepare(loaded)).model.residual
    assert residual.classes == ("indoor", "outdoor")
    indoor, outdoor = residual.matrices
    assert (indoor.start.item(), indoor.prior.df, outdoor.start.item(), outdoor.prior.df) == (4.0, 5.0, 9.0, 8.0)
    assert not indoor.fixed and not outdoor.fixed


def test_what_a_class_does_not_say_is_written_out(folder):
    residual = {"by": "housing", "start": 4, "prior": PRIOR, "classes": {"outdoor": {"fixed": True}, "indoor": 7}}
    written = load_config(analysis(residual=residual)).resolved()["variances"]["residual"]["classes"]
    assert written["outdoor"] == {"start": [[4.0]], "fixed": True, "prior": {"df": 5.0, "scale": [[6.0]]}}
    assert written["indoor"] == {"start": [[7.0]], "fixed": False, "prior": {"df": 5.0, "scale": [[6.0]]}}


def test_names_and_files_of_a_run(folder):
    residual = {"by": "housing", "start": 4, "prior": PRIOR}
    result = mmgibbs.run(analysis(residual=residual), progress=False)
    assert set(result.summary["parameter"]) == {
        "animal.var[gain]",
        *(f"residual.var[gain|{c}]" for c in ("indoor", "outdoor")),
        *(f"ratio[animal:gain|{c}]" for c in ("indoor", "outdoor")),
    }
    assert result.info["data"]["residual_classes"] == {"indoor": 4, "outdoor": 4}
    assert result.info["data"]["missing_patterns"] == 1
    counted = result.info["variances_counted"]
    assert list(counted) == ["gain|indoor", "gain|outdoor"]
    assert counted["gain|outdoor"]["phenotypic_variance"] == ["animal.var[gain]", "residual.var[gain|outdoor]"]
    assert "residual.var[gain|indoor]" in result.draws["posterior"]
    assert result.solutions["mean"].is_finite().all()
    assert check(analysis(residual=residual))["data"]["residual_classes"] == {"indoor": 4, "outdoor": 4}


def test_two_traits_of_which_a_class_lacks_one(folder):
    prior = {"df": 6, "scale": [[6, 0], [0, 1]]}
    residual = {"by": "housing", "start": [[4, 0.5], [0.5, 1]], "prior": prior}
    result = mmgibbs.run(analysis(("gain", "fat"), residual), progress=False)
    names = set(result.summary["parameter"])
    assert "residual.cov[gain,fat|indoor]" in names and "residual.corr[gain,fat|indoor]" in names
    assert "residual.cov[gain,fat|outdoor]" not in names and "residual.var[fat|outdoor]" in names
    assert any("no record of class 'outdoor' has trait fat" in w for w in result.info["warnings"])
    with pytest.raises(ModelError, match=r"variances.residual.classes.outdoor: the posterior does not exist"):
        check(analysis(("gain", "fat"), {"by": "housing", "classes": {"indoor": {"prior": prior}}}))


MISTAKES = [
    ({"by": "house"}, DataError, "there is no column 'house' (variances.residual.by); nearest: 'housing'"),
    (
        {"by": "housing", "classes": {"outdor": 3}},
        ConfigError,
        "variances.residual.classes.outdor: no record has this value in column 'housing'; did you mean 'outdoor'?",
    ),
    (
        {"classes": {"outdoor": 3}},
        ConfigError,
        "variances.residual.classes: found classes without by, needed by: COLUMN of the phenotypes",
    ),
    (
        {"by": "housing", "classes": {"outdoor": {"strat": 3}}},
        ConfigError,
        "variances.residual.classes.outdoor.strat: unknown key; did you mean 'start'?",
    ),
    (
        {"by": "housing", "classes": {"outdoor": {"start": -3}}},
        ConfigError,
        "variances.residual.classes.outdoor.start: found the variance -3 for gain, needed one above 0",
    ),
    (
        {"by": "housing", "fixed": True},
        ConfigError,
        "variances.residual.start: missing, needed one number (the variance of gain) for fixed: true",
    ),
    (
        {"by": "housing", "classes": {"outdoor": {"fixed": True}}},
        ConfigError,
        "variances.residual.classes.outdoor.start: missing, needed one number (the variance of gain) for fixed: true",
    ),
]


@pytest.mark.parametrize("residual, kind, message", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_told(folder, residual, kind, message):
    with pytest.raises(kind) as error:
        check(analysis(residual=residual))
    assert message in str(error.value)


def test_a_record_without_a_class_is_told_with_its_row(folder):
    (folder / "growth.csv").write_text(RECORDS.replace("c,2,indoor", "c,2,"))
    with pytest.raises(DataError) as error:
        check(analysis())
    message = str(error.value)
    assert "growth.csv row 4: found no value in column 'housing' (variances.residual.by)" in message
    assert "needed the class of the residual of every record that observes a trait" in message


def test_a_record_without_a_trait_needs_no_class(folder):
    (folder / "growth.csv").write_text(RECORDS + "i,1,,,\n")
    assert check(analysis())["data"]["residual_classes"] == {"indoor": 4, "outdoor": 4}


def test_a_name_that_parameters_cannot_carry(folder):
    (folder / "growth.csv").write_text(RECORDS.replace("outdoor", "out:door"))
    with pytest.raises(DataError, match="found the class 'out:door' with the character ':'"):
        check(analysis())


@pytest.fixture(scope="module")
def pigs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pigs") / "run"
    return mmgibbs.open_run(copy_of_run(tmp_path_factory, "residual_classes", directory))


def test_the_report_page_says_so(pigs):
    from mmgibbs.report.make import make_report

    page = make_report([pigs.directory]).read_text(encoding="utf-8").replace("<wbr>", "")  # where names may break
    assert "one for each class of housing (indoor, outdoor)" in page
    assert "residual.var[daily_gain|outdoor]" in page and "h2[backfat|indoor]" in page


def test_export_names_each_class(pigs, tmp_path):
    from mmgibbs.exchange.blupf90_write import export_blupf90

    folder = export_blupf90(pigs.directory, tmp_path / "out")
    lines = (folder / "postind").read_text().splitlines()
    assert lines[0].startswith(" G matrix") and [x for x in lines if "R matrix" in x] == [
        " R matrix, class indoor",
        " R matrix, class outdoor",
    ]
    assert len((folder / "postgibbs_samples").read_text().splitlines()[0].split()) == 3 + 9


def test_validation_takes_the_variances_of_a_run(pigs, tmp_path):
    from mmgibbs.runs.starts import read_starts

    loaded = load_config(ROOT / "configs" / "residual_classes.yaml")
    overrides = read_starts(pigs.directory, loaded)
    classes = json.loads(next(o for o in overrides if o.startswith("variances.residual")).partition("=")[2])
    mean = dict(pigs.summary.select("parameter", "mean").iter_rows())
    assert classes["outdoor"]["start"][0][0] == mean["residual.var[daily_gain|outdoor]"]
    assert classes["indoor"]["start"][0][1] == mean["residual.cov[daily_gain,backfat|indoor]"]
