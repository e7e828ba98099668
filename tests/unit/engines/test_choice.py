"""The registry of engines: what it lists, what an engine says of itself, and that other lists agree with it."""

import inspect
import re

import pytest
from helpers.compiled import SOURCES
from helpers.mixed_models import equations_of
from helpers.small_analysis import ANALYSIS, refused, replaced, write_files
from reference import models

from mmgibbs.config.sampling import TOLERANCES, Sampler
from mmgibbs.engines.base import Engine
from mmgibbs.engines.choice import EngineChoice, engine_class
from mmgibbs.engines.facts import EngineFacts
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.equations.partition import KINDS
from mmgibbs.models.engine_kinds import ENGINES, EngineKind
from mmgibbs.models.gpu_rules import Asked, describe_gpu_refusal

DEVICES = [("cpu", name) for name in ENGINES] + [("gpu", name) for name, kind in ENGINES.items() if kind.gpu]
CLASSES = [engine_class(name, device) for device, name in DEVICES]
OPERATIONS = [name for name, _ in inspect.getmembers(Engine, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("engine", CLASSES, ids=lambda engine: engine.__name__)
def test_an_engine_has_every_operation_and_takes_its_options(engine):
    assert {"sweep", "replace_y", "restore"} <= set(OPERATIONS)
    assert all(callable(getattr(engine, name)) for name in OPERATIONS)
    assert set(engine.options) <= set(inspect.signature(engine).parameters)
    assert set(engine.options) <= set(EngineChoice.__dataclass_fields__)


@pytest.mark.parametrize("name", ENGINES)
def test_a_choice_builds_the_engine_of_that_name(name):
    design = models.example("bivariate_missing").design
    kind = ENGINES[name].partitions[0]
    choice = EngineChoice(name, threads=2, tolerance=TOLERANCES["gibbs"])
    engine = choice.build(equations_of(design, kind))
    assert isinstance(engine, engine_class(name, "cpu")) and engine.name == name
    assert engine.refuses(design) is None


def test_the_table_says_what_auto_and_the_partition_need():
    assert EngineKind("", "").partitions == KINDS and all(
        set(kind.partitions) <= set(KINDS) for kind in ENGINES.values()
    )
    for device, name in DEVICES:
        engine, kind = engine_class(name, device), ENGINES[name]
        of_contract = [fact for fact in vars(EngineFacts) if fact.startswith("count_device")]
        assert device == "cpu" or all(getattr(engine, fact) is not getattr(EngineFacts, fact) for fact in of_contract)
        if "cpu" in kind.auto and device == "cpu":
            assert kind.integrates or engine.sweep_cost is not None
            assert kind.integrates == (engine.likelihood_costs is not EngineFacts.likelihood_costs)


def test_nothing_compares_the_name_of_an_engine():
    """What differs between engines is in the table and in their classes."""
    compared = re.compile(rf"""([!=]=|\bcase|\bin \W*) ?["']({"|".join(ENGINES)})["']""")
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES if path.name != "animals.py"}  # a hybrid plant
    assert [path.name for path, text in texts.items() if compared.search(text)] == []
    assert compared.search('choice.name != "marginal"') and compared.search('s.engine not in ("pcg", "auto")')


def test_an_analysis_may_name_every_engine_and_auto():
    for name in (*ENGINES, "auto"):
        assert Sampler(engine=name).engine == name
    with pytest.raises(ValueError, match="engine"):
        Sampler(engine="turbo")


def test_an_engine_without_a_gpu_is_refused_by_a_rule():
    for name, kind in ENGINES.items():
        assert (describe_gpu_refusal(Asked("gibbs", name)) is None) == bool(kind.gpu)
    assert "needed engine: structured, hybrid or pcg" in describe_gpu_refusal(Asked("gibbs", "serial"))


def test_what_an_engine_cannot_do_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    class Choosy(SerialEngine):
        @staticmethod
        def refuses(design):
            return f"records of {design.traits[0]}" if design.traits else None

    monkeypatch.setattr("mmgibbs.engines.serial.SerialEngine", Choosy)
    short = "chains: 2, burn_in: 2, samples: 6, thin: 1, engine: serial"
    write_files(
        tmp_path,
        {
            "analysis.yaml": replaced(
                replaced(ANALYSIS, "method: blup", short), "variances:", "variances:\n  mode: fixed"
            )
        },
    )
    message = refused(tmp_path, run=("check", "analysis.yaml"))
    assert "engine serial with device cpu cannot be combined with records of" in message
