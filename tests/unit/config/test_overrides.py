"""`--set KEY=VALUE`: what it changes in an analysis, and what it refuses."""

import pytest
from helpers.analysis_files import load_text, small

from mmgibbs.config import load_config
from mmgibbs.errors import ConfigError


def test_overrides_change_single_values_and_whole_sections(beef):
    of_sampler = ["sampler.samples=100", "sampler.thin=1e1", "sampler.seed=1", "sampler.seed=2"]
    a = load_config(beef, [*of_sampler, "data.missing=['', -9]", "model.random.herd={level: h}"])
    assert a.sampler.samples == 100 and a.sampler.thin == 10 and a.sampler.seed == 2 and a.sampler.chains == 4
    assert a.data.missing == ("", "-9")
    assert a.model.random["herd"].effects[""].level == "h"


def test_overrides_reach_into_short_forms(beef):
    changed = ["model.fixed.sex.column=s", "traits.weaning_weight.missing=[-9]", "model.random.herd.level=h"]
    a = load_config(beef, [*changed, "variances.residual.fixed=yes"])
    assert a.model.fixed["sex"].column == "s" and a.traits[1].missing == ("-9",) and a.traits[0].missing == ()
    assert a.variances.residual.fixed and a.variances.residual.start == ((12.0, 10.0), (10.0, 160.0))
    assert load_config(
        small(variances={"residual": 3}), ["variances.residual.fixed=true"]
    ).variances.residual.start == ((3.0,),)


@pytest.mark.parametrize("null", ["null", "~", " NULL "])
def test_null_removes_an_effect_or_a_setting(null):
    effects = {"fixed": {"sex": {}, "age": {}}, "random": {"a": {"level": "h"}, "b": {"level": "g"}}}
    analysis = small(traits=["y", "z"], model=effects, sampler={"thin": 7}, variances={"a": [[3, 0], [0, 3]]})
    paths = ("model.fixed.age", "model.random.b", "sampler.thin", "variances.a.start", "traits.z")
    changed = load_config(analysis, [f"{path}={null}" for path in paths])
    assert list(changed.model.fixed) == ["sex"] and list(changed.model.random) == ["a"]
    assert (changed.sampler.thin, changed.variances.terms["a"].start) == (10, None)
    assert [trait.name for trait in changed.traits] == ["y"]
    assert list(load_config(analysis | {"variances": {}}).model.random) == ["a", "b"], "the caller's dict is unchanged"


def test_overrides_of_null_and_of_names_with_a_dot():
    assert list(load_config(small(), ["model.fixed={sex: null}"]).model.fixed) == ["sex"]
    a = load_config(small(traits={"weight.200": {}}), ["traits.weight.200.column=w200"])
    assert a.traits[0].column == "w200"


@pytest.mark.parametrize("overrides", [{"sampler.thin": 3}, [{"sampler.thin": 3}], 3])
def test_overrides_are_a_list_of_texts(beef, overrides):
    with pytest.raises(ConfigError, match=r"^overrides: found .*, needed a list of 'KEY.PATH=VALUE', such as "):
        load_config(beef, overrides)


def test_an_override_does_not_change_what_shares_an_anchor(tmp_path):
    text = "data: {phenotypes: p.csv}\ntraits: [y]\nmodel: {random: {a: &a {level: h}, b: *a}}\n"
    a = load_text(tmp_path, text, "model.random.b.level=g")
    assert a.model.random["a"].effects[""].level == "h" and a.model.random["b"].effects[""].level == "g"


@pytest.mark.parametrize(
    "override, message",
    [
        ("sampler.sampels=1", "override 'sampler.sampels=1': sampler.sampels: unknown key; did you mean 'samples'?"),
        ("samples=1", "override 'samples=1': samples: unknown key; did you mean 'sampler.samples'?"),
        ("sampler.thin=-3", "override 'sampler.thin=-3': sampler.thin: found -3, needed a whole number of at least 1"),
        ("sampler.samples", "override 'sampler.samples': needed KEY.PATH=VALUE, such as sampler.samples=100"),
        ("=3", "override '=3': needed KEY.PATH=VALUE, such as sampler.samples=100"),
        ("sampler..thin=3", "override 'sampler..thin=3': needed KEY.PATH=VALUE, such as sampler.samples=100"),
        ("sampler.thin.x=3", "override 'sampler.thin.x=3': sampler.thin is 10, which has no keys"),
        ("sampler.x.y=3", "override 'sampler.x.y=3': sampler.x: unknown key; known are method, chains, "),
        ("sampler.thin=[", "override 'sampler.thin=[' line 1, column "),
        ("data.phenotypes=", "override 'data.phenotypes=': found nothing, needed a value; null removes the key"),
        ("data.phenotypes=null", "override 'data.phenotypes=null': data.phenotypes: missing, needed "),
        ("sampler.sampels=null", "override 'sampler.sampels=null': null removes a key, but the analysis has no "),
        ("model.random.x=null", "override 'model.random.x=null': null removes a key, but the analysis has no 'x' in "),
        ("nme=~", "override 'nme=~': null removes a key, but the analysis has no 'nme'; did you mean 'name'?"),
    ],
)
def test_overrides_that_cannot_be(beef, override, message):
    with pytest.raises(ConfigError) as error:
        load_config(beef, [override])
    assert str(error.value).startswith(message)
