"""Messages of engines name levels by their ids."""

import polars as pl
import pytest

import mmgibbs
from mmgibbs.build.level_names import name_levels
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.errors import ModelError

TABLE = pl.DataFrame(
    {"herd": ["DE-17", "AT-4"] * 10, "tag": [f"t(1), {i}" for i in range(20)], "x": [float(i) for i in range(20)]}
).with_columns(y=pl.col("x") ** 2)
MODEL = mmgibbs.MixedModel(traits="y", fixed={"herd": "class", "x": "covariate"}, random=["tag"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("first at effect herd (y), level number 1 of 2: differs", "first at effect herd (y), level 'AT-4': differs"),
        ("term 'tag' (y), level number 2 of 20: no\nterm 'herd' (y), level number 2 of 2", None),
        ("effect x (slope:y), level number 1 of 1", "effect x (slope:y), level number 1 of 1"),
        ("effect other (y), level number 1 of 2", "effect other (y), level number 1 of 2"),
    ],
)
def test_levels_have_their_ids(text, expected):
    prepared = prepare(load_config(MODEL.analysis(TABLE)))
    herd, tag = (next(la.ids for t, la in zip(prepared.design.terms, prepared.levels, strict=True) if t.name == name)
                 for name in ("herd", "tag"))  # fmt: skip
    if expected is None:
        expected = f"term 'tag' (y), level '{tag[1]}': no\nterm 'herd' (y), level '{herd[1]}'"
    assert name_levels(text, prepared) == expected.replace("AT-4", herd[0])


def test_a_run_that_ends_in_an_engine(monkeypatch):
    """The error of a solution, with the id in place of the number."""

    def failing(*_):
        raise ModelError("not positive definite, first at effect herd (y), level number 2 of 2: needed others")

    monkeypatch.setattr("mmgibbs.runs.mixed_model.MixedModelProblem._blup", failing)
    held = {"tag": 1.0, "residual": 1.0}
    model = mmgibbs.MixedModel(traits="y", fixed=["herd"], random=["tag"], method="blup", variances=held)
    with pytest.raises(ModelError, match=r"effect herd \(y\), level '(DE-17|AT-4)': needed others"):
        model.fit(TABLE, progress=False)
