"""The JSON schema of the analysis file: what the program reads is valid, what it refuses key by key is not."""

import json

import jsonschema
import pytest
import yaml
from helpers.good_analysis import changed
from helpers.support import ROOT

from mmgibbs.cli import main
from mmgibbs.config import load_config
from mmgibbs.config.fields import Section
from mmgibbs.config.schema import FILE, MODELINE, analysis_schema, write_schema
from mmgibbs.errors import ConfigError

SCHEMA = analysis_schema()
ANALYSES = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("data_samples/*/analysis.yaml")])
SMALL = {
    "data": {"phenotypes": "p.csv", "pedigree": "ped.csv"},
    "traits": ["y"],
    "model": {"fixed": {"sex": {}}, "random": {"animal": {"relationship": "pedigree"}}},
    "variances": {"animal": 1.0, "residual": 2},
    "sampler": {"samples": 100},
}


def problems(tree) -> list[str]:
    return [error.json_path for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(tree)]


def sections():
    """Every section that an analysis can have."""
    found, more = [], [Section]
    while more:
        more = [s for section in more for s in section.__subclasses__() if s.__module__.startswith("mmgibbs.")]
        found += more
    return [s for s in found if s.__name__ != "Relationship"]


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize("path", ANALYSES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_analysis_is_valid_also_with_its_defaults_written_out(path):
    assert problems(yaml.safe_load(path.read_text(encoding="utf-8"))) == []
    assert problems(load_config(path).resolved()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("tratis", ["y"]),
        ("sampler.sampels", 100),
        ("data.inbreeding", "accounted"),
        ("sampler.samples", 0),
        ("sampler.thin", 2.5),
        ("sampler.method", "gibs"),
        ("sampler.stop", {"rhat": 1.0}),
        ("sampler.checkpoint_every", "ten minutes"),
        ("sampler.interweave", "sometimes"),
        ("model.fixed.sex", {"kind": "clas"}),
        ("model.random.animal", {"relationship": {"kind": "pedigre"}}),
        ("model.random.animal", {"effects": {"direct": {"level": "animal", "legendre": {"degree": 30}}}}),
        ("model.markers", {"snps": {"variance": {"share": 1.5}}}),
        ("data", {"pedigree": "ped.csv"}),
        ("data.genotypes", {"file": "a.bed", "quality": {"maf": 0.7}}),
        ("traits", {"y": {"type": "binry"}}),
        ("variances.mode", "fix"),
        ("variances.animal", {"start": "one"}),
        ("variances.animal", {"prior": {"df": 3}}),
        ("output.csv", "no"),
        ("decisions", {"top": [0]}),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_seen_by_schema_and_program(path, value):
    tree = changed(path, value, SMALL)
    assert problems(SMALL) == [] and problems(tree) != []
    with pytest.raises(ConfigError):
        load_config(tree)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.fixed.sex", None),
        ("sampler.threads", "auto"),
        ("sampler.checkpoint_every", "10m"),
        ("variances.animal", {"prior": "flat"}),
        ("variances.animal", [[1.0]]),
        ("variances.animal", {"prior": {"half_t": {"df": 2}}}),
        ("model.random.animal", {"relationship": "pedigree", "level": "id", "unknown_level": "omit"}),
        ("model.random.animal", {"relationship": "inverse.txt"}),
        ("traits", "y"),
        ("output.save_levels", [{"animal": ["a"]}, "sex"]),
        ("decisions", {"candidates": ["a"], "index": {"profit": {"y": 1.5}}}),
    ],
)  # fmt: skip
def test_short_and_long_forms_are_valid(path, value):
    tree = changed(path, value, SMALL)
    assert problems(tree) == []
    load_config(tree)


def test_every_key_has_a_meaning_and_says_what_it_accepts():
    for section in sections():
        assert [k for k, field in section.fields_by_key().items() if not field.description] == [], section.__name__
        if section.__name__ in SCHEMA["$defs"]:
            of_section = SCHEMA["$defs"][section.__name__]
            properties = next(s for s in (of_section, *of_section.get("anyOf", ())) if "properties" in s)["properties"]
            vague = [k for k, p in properties.items() if not {"anyOf", "type", "enum", "const", "$ref"} & set(p)]
            assert vague == [], section.__name__


def test_defaults_are_valid():
    for name, of_section in SCHEMA["$defs"].items():
        mapping = next(s for s in (of_section, *of_section.get("anyOf", ())) if "properties" in s)
        for key, schema in mapping["properties"].items():
            if "default" in schema:
                whole = schema | {"$defs": SCHEMA["$defs"]}
                jsonschema.Draft202012Validator(whole).validate(schema["default"]), (name, key)


def test_the_command_prints_it_or_writes_it(tmp_path, capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert main(["schema", "--output", str(tmp_path / "s.json")]) == 0
    assert "$schema=s.json" in capsys.readouterr().out
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == SCHEMA
    assert main(["schema", "--output", str(tmp_path / "none" / "s.json")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_files_that_the_program_writes_name_it(tmp_path, capsys):
    assert main(["simulate", str(tmp_path / "beef"), "--animals", "400"]) == 0
    assert (tmp_path / "beef" / "analysis.yaml").read_text(encoding="utf-8").startswith(MODELINE)
    assert json.loads((tmp_path / "beef" / FILE).read_text(encoding="utf-8")) == SCHEMA


def test_a_file_of_another_program_is_not_replaced(tmp_path):
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(ConfigError, match="is not a schema of mmgibbs"):
        write_schema(tmp_path)
