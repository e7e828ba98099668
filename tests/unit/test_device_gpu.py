"""`device: gpu` with every kind of model and option: it is accepted, or refused in one line that names the key.

What an analysis can ask for is read from the registries and the schema, so that a kind which is new, and is neither
accepted nor refused here, fails. A stand-in takes the place of CuPy: nothing is sampled.
"""

import typing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers.host_arrays import ArraysDevice
from reference import models

import mmgibbs.build.device_memory
import mmgibbs.build.engine
import mmgibbs.engines.coloured_gpu.engine
from mmgibbs.build.assemble import assemble
from mmgibbs.build.engine import choose_engine
from mmgibbs.config.relationships import KINDS
from mmgibbs.config.sampling import Sampler
from mmgibbs.config.structures import Structure
from mmgibbs.config.traits import Trait
from mmgibbs.data.prepare import prepare
from mmgibbs.data.traits import load_analysis
from mmgibbs.errors import ConfigError
from mmgibbs.models.engine_kinds import ENGINES
from mmgibbs.models.gpu_rules import GPU_RULES, Asked, find_gpu_refusals
from mmgibbs.models.marker_priors import MARKER_PRIORS
from mmgibbs.regressions.arrays import gpu
from mmgibbs.regressions.registry import plugin_names
from mmgibbs.runs.check_text import counts_as_text
from mmgibbs.runs.run import check

N = 60


def choices(section, key):
    """The values of a key that takes words."""
    found, waiting = set(), [section.model_fields[key].annotation]
    while waiting:
        hint = waiting.pop()
        if typing.get_origin(hint) is typing.Literal:
            found |= set(typing.get_args(hint))
        else:
            waiting += typing.get_args(hint)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of 60 animals in 6 rows and 10 columns of plots, their pedigree, genotypes and a relationship file."""
    path, rng = tmp_path_factory.mktemp("gpu"), np.random.default_rng(4)
    animals = [f"a{i}" for i in range(N)]
    parents = [("0", "0") if i < 12 else (f"a{i % 6}", f"a{6 + i % 5}") for i in range(N)]
    y = rng.normal(10, 2, (N, 3))
    columns = {
        "animal": animals, "herd": [f"h{i % 4}" for i in range(N)], "age": rng.uniform(1, 9, N).round(2),
        "row": [i // 10 for i in range(N)], "column": [i % 10 for i in range(N)], "gain": y[:, 0], "fat": y[:, 1],
        "milk": y[:, 2], "ill": rng.integers(0, 2, N), "score": rng.integers(1, 4, N), "cases": rng.poisson(2, N),
        "low": y[:, 0], "high": y[:, 0] + rng.integers(0, 2, N), "weight": rng.uniform(1, 2, N).round(3),
        "pen": [f"p{i % 7}" for i in range(N)], "side": ["left", "right"] * (N // 2),
    }  # fmt: skip
    pl.DataFrame(columns).write_csv(path / "records.csv")
    pedigree = {"animal": animals, "sire": [s for s, _ in parents], "dam": [d for _, d in parents]}
    groups = [("g1" if i % 2 else "g2") if i < 12 else None for i in range(N)]
    pl.DataFrame(pedigree | {"origin": groups, "selfings": [0] * N}).write_csv(path / "pedigree.csv")
    snps = {f"s{j}": rng.integers(0, 3, N) for j in range(25)}
    genotypes = pl.DataFrame({"animal": animals} | snps)
    genotypes.write_csv(path / "genotypes.csv")
    genotypes.head(50).write_csv(path / "some.csv")
    (path / "inverse.txt").write_text("".join(f"p{i} p{i} {1 + i}\n" for i in range(7)))
    return path


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """A GPU that is there, and does nothing."""
    idle = SimpleNamespace(name="GPU", free_bytes=lambda: 10**9, nominal_bandwidth=1e12)
    arrays = type("Arrays", (), {"device": "gpu", "threads": None, "xp": np, "cuda": idle})
    monkeypatch.setattr(mmgibbs.build.engine, "import_cupy", lambda: None)
    monkeypatch.setattr(mmgibbs.build.device_memory, "Device", lambda: idle)
    monkeypatch.setattr(gpu, "Gpu", arrays)
    monkeypatch.setattr("mmgibbs.genotypes.on_device.Device", ArraysDevice)
    return idle


def analysis(folder, traits=("gain",), random=None, variances=None, sampler=None, data=None, **more):
    """A model of gain with a herd and unrelated pens, changed."""
    tables = {"phenotypes": str(folder / "records.csv"), "pedigree": str(folder / "pedigree.csv")}
    return {
        "name": "gpu",
        "data": tables
        | {name: str(folder / value) if "." in str(value) else value for name, value in (data or {}).items()},
        "traits": traits if isinstance(traits, dict) else list(traits),
        "model": {"fixed": {"herd": {}}, "random": {"pen": {}} if random is None else random} | more.pop("model", {}),
        "variances": variances or {},
        "sampler": {"chains": 1, "burn_in": 5, "samples": 20, "thin": 1, "device": "gpu"} | (sampler or {}),
        "output": {"directory": "run"},
    } | more


ANIMAL = {"genetic": {"level": "animal", "relationship": "pedigree"}}
ON_CHIPS = {"data": {"genotypes": "genotypes.csv"}}
GENOTYPES, SOME = {"genotypes": "genotypes.csv"}, {"data": {"genotypes": "some.csv"}}
PAIR, TRIPLE = ("gain", "fat"), ("gain", "fat", "milk")
of_kind = lambda kind, **keys: {"genetic": {"level": "animal", "relationship": {"kind": kind} | keys}}
of_snps = lambda prior, **keys: {"model": {"random": {}, "markers": {"snps": {"prior": prior} | keys}}} | ON_CHIPS
BLUP, PCG = {"sampler": {"method": "blup"}}, {"sampler": {"engine": "pcg"}}
REDUCED, MATES = {"structure": "reduced_rank"}, {"level": {"group": "pen", "of": "animal"}}
ABSORPTION = {"method": "blup", "preconditioner": "absorption"}
AR1, SPLINE = {"kind": "ar1", "column": "column"}, {"kind": "spline", "of": "age"}
WALK, SLOPE = {"kind": "random_walk", "of": "age"}, {"level": "pen", "covariates": ["age"]}
known = lambda term: {"variances": {term: 1.0, "residual": 2.0}}
EPSILON = {"prior": "rr", "single_step": "epsilon"}
RULES = {rule.name: rule for rule in GPU_RULES}

STRUCTURES = "full diagonal factor_analytic compound_symmetry ar1 antedependence".split()
SETTINGS = {
    "engine": ["auto", "structured", "hybrid", "pcg"], "method": ["gibbs"], "update": ["site", "level"],
    "partition": ["auto", "colour"], "precision": ["single", "double"],
}  # fmt: skip
ACCEPTED = {
    **{f"{key} {value}": {"sampler": {key: value}} for key, values in SETTINGS.items() for value in values},
    **{f"structure {kind}": {"traits": TRIPLE, "variances": {"pen": {"structure": kind}}} for kind in STRUCTURES},
    "relationship identity": {},
    "relationship pedigree": {"random": ANIMAL},
    "relationship file": {"random": {"pen": {"relationship": "inverse.txt"}}},
    "relationship ar1, known": {"random": {"field": {"relationship": AR1 | {"rho": 0.5, "fixed": True}}}},
    "relationship random_walk": {"random": {"curve": {"relationship": {"kind": "random_walk", "of": "age"}}}},
    "selfing": {"random": of_kind("pedigree", selfing="selfings")},
    "groups": {"random": ANIMAL, "data": {"groups": {"column": "origin", "effect": "random"}}},
    "several traits": {"traits": TRIPLE, "random": ANIMAL},
    "traits by environment": {"traits": {"gain": {"by": "side"}}},
    "weights": {"data": {"weights": "weight"}},
    "a random regression": {"random": {"pens": {"effects": {"pen": {"level": "pen"}, "slope": SLOPE}}}},
    "prior half_t": {"variances": {"pen": {"prior": {"half_t": {"df": 2}}}}},
    "prior inverse Wishart": {"variances": {"pen": {"prior": {"df": 5, "scale": 2}}}},
    **{f"prior {prior}": of_snps(prior) for prior in MARKER_PRIORS},
    "SNP effects of several traits": of_snps("rr") | {"traits": PAIR},
    "SNP effects of several traits, one by one": of_snps("bayes_c", across_traits="one_by_one") | {"traits": PAIR},
    "SNP effects of several traits, independent": of_snps("bayes_c", across_traits="independent") | {"traits": PAIR},
    "SNP effects of all animals": SOME | {"model": {"random": ANIMAL, "markers": {"snps": EPSILON}}},
    "known variances": {"variances": {"mode": "fixed", "pen": 1.0, "residual": 2.0}},
    "residual classes": {"variances": {"residual": {"by": "side"}}},
    "residual classes, hybrid": {"variances": {"residual": {"by": "side"}}, "sampler": {"engine": "hybrid"}},
    "moments": {"output": {"directory": "run", "moments": ["gain"]}},
    "type binary": {"traits": {"ill": {"type": "binary"}}},
    "type ordinal": {"traits": {"score": {"type": "ordinal"}}},
    "type count": {"traits": {"cases": {"type": "count"}}},
    "type censored": {"traits": {"life": {"type": "censored", "lower": "low", "upper": "high"}}},
    "binary beside normal": {"traits": {"gain": {}, "ill": {"type": "binary"}}},
    "type normal": {"traits": {"gain": {"type": "normal"}}},
    "partition equal, hybrid": {"sampler": {"partition": "equal", "engine": "hybrid"}},
    "partition effect, hybrid": {"sampler": {"partition": "effect", "engine": "hybrid", "update": "site"}},
    "interweave": {"sampler": {"interweave": True}},
    "method blup": known("pen") | BLUP,
    "relationship genomic": {"random": of_kind("genomic", blend=0.05), "data": GENOTYPES},
    "relationship dominance": {"random": of_kind("dominance"), "data": GENOTYPES},
    "relationship single_step": {"random": of_kind("single_step", blend=0.05), "data": GENOTYPES},
    "genomic by a core": {"random": of_kind("genomic", blend=0.05, core={"size": 20}), "data": GENOTYPES},
    "genomic, blup": {"random": of_kind("genomic", blend=0.05), "data": GENOTYPES} | known("genetic") | BLUP,
    "single_step, pcg": {"random": of_kind("single_step", blend=0.05)} | ON_CHIPS | PCG,
    "genomic by a core, pcg": {"random": of_kind("genomic", blend=0.05, core={"size": 20})} | ON_CHIPS | PCG,
    "reml by samples": {"sampler": {"method": "reml", "engine": "pcg"}},
}
REFUSED = {
    # name -> the analysis, and the rule of models/gpu_rules.py or what is said
    "structure reduced_rank": ({"traits": PAIR, "variances": {"pen": REDUCED}}, "reduced rank"),
    "relationship ar1": ({"random": {"field": {"relationship": AR1}}}, "estimated correlations"),
    "relationship spline": ({"random": {"curve": {"relationship": SPLINE}}, "sampler": {"burn_in": 200}}, "splines"),
    "pen mates": ({"random": {"mate": MATES, "animal": {}}}, "several levels"),
    "engine serial": ({"sampler": {"engine": "serial"}}, "serial"),
    "engine marginal": ({"sampler": {"engine": "marginal", "burn_in": 200}}, "marginal"),
    "curve, blup": ({"random": {"curve": {"relationship": WALK}}} | known("curve") | BLUP, "curves"),
    "single-step by a core, blup": (
        {"random": of_kind("single_step", blend=0.05, core={"size": 20})} | SOME | known("genetic") | BLUP,
        "single-step by a core",
    ),
    "preconditioner absorption": ({"sampler": ABSORPTION} | known("pen"), "absorption"),
    "method reml": ({"sampler": {"method": "reml"}}, "reml"),
    "partition equal": ({"sampler": {"partition": "equal"}}, "sampler.partition: found 'equal', which cannot be c"),
    "partition effect": ({"sampler": {"partition": "effect", "update": "site"}}, "sampler.partition: found 'effect', "),
}


def counted(folder, case, monkeypatch):
    monkeypatch.chdir(folder)
    return check(analysis(folder, **case))


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(folder, name, monkeypatch):
    asked = ACCEPTED[name].get("sampler", {}).get("engine", "structured")
    counts = counted(folder, ACCEPTED[name], monkeypatch)
    assert counts["device"]["name"] == "GPU"
    if "engine" not in counts:
        assert ACCEPTED[name]["sampler"]["method"] != "gibbs"
        return
    engine = counts["engine"]
    assert engine == ("structured" if asked == "auto" else asked)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line_that_names_the_key(folder, name, monkeypatch):
    """On the CPU the same analysis is a good one."""
    case, message = REFUSED[name]
    counted(folder, case | {"sampler": case.get("sampler", {}) | {"device": "cpu"}}, monkeypatch)
    with pytest.raises(ConfigError) as refused:
        counted(folder, case, monkeypatch)
    text = str(refused.value).removeprefix("analysis: ")
    assert text.startswith("sampler.") and "\n" not in text
    if message not in RULES:
        assert message in text
        return
    rule = RULES[message]
    assert text.startswith("sampler.device: found gpu, which cannot be combined with ")
    assert text.endswith(f": {rule.why}; needed {rule.needed}")


def outcome(sampler, model):
    """The engine that is chosen, or what is said."""
    try:
        return choose_engine(sampler, model).engine.name
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize("name", [name for name in (*ACCEPTED, *REFUSED) if not name.startswith(("engine", "method"))])
def test_every_engine_takes_it_or_a_rule_refuses_it(folder, name, monkeypatch):
    """What no rule refuses on a GPU is chosen there, or refused on the CPU in the same words."""
    monkeypatch.chdir(folder)
    case = ACCEPTED.get(name) or REFUSED.get(name, ({},))[0]
    options = {"engine": "structured", "partition": "auto", "update": "level"} | dict(device="cpu", burn_in=200)
    loaded = load_analysis(analysis(folder, **case | {"sampler": options}))
    model = assemble(loaded, prepare(loaded)).model
    for engine in ENGINES:
        sampler = loaded.sampler.model_copy(update={"engine": engine, "device": "gpu", "tolerance": 1e-8})
        refused = [words for _, words in find_gpu_refusals(Asked("gibbs", engine, model.design))]
        found = outcome(sampler, model)
        if refused:
            assert refused[0] in found and found.startswith("sampler.device: found gpu"), (engine, found)
        elif found != engine:
            on_cpu = outcome(sampler.model_copy(update={"device": "cpu"}), model)
            assert on_cpu.replace("device cpu", "device gpu") == found, (engine, found)


def test_every_rule_is_tested():
    """Rules about sizes and about correlated residuals are tested below."""
    tested = {rule for _, rule in REFUSED.values()}
    assert set(RULES) - tested == {"components", "long lists", "correlated residuals"}


class Lengthy:
    """Levels of more records than there is memory for."""

    def __ge__(self, other):
        return self

    def sum(self):
        return 2**32


def test_rules_of_sizes_and_of_correlated_residuals(monkeypatch):
    design = models.example("three_traits_maternal").design
    monkeypatch.setattr("mmgibbs.models.gpu_rules.MAX_COMPONENTS", 4)
    asked = Asked("gibbs", "structured", design)
    ((rule, words),) = find_gpu_refusals(asked)
    assert rule.name == "components" and words == "term 'genetic', which has 5 components per level"
    assert list(find_gpu_refusals(asked._replace(engine="hybrid"))) == []
    ((rule, words),) = find_gpu_refusals(asked._replace(engine="hybrid", design=replace(design, correlated=(1,))))
    assert rule.name == "correlated residuals" and words == "variances.residual.known"
    effect = SimpleNamespace(level=Lengthy())
    long = SimpleNamespace(correlated=(), markers=(), terms=[SimpleNamespace(name="herd", effects=(effect,))])
    said = "term 'herd', whose levels meet 4,294,967,296 records, more than 4,294,967,295"
    assert RULES["long lists"].find(asked._replace(design=long)) == said


def test_device_memory_of_snp_effects_is_counted(folder, monkeypatch):
    needed = []
    for of_markers in (0, 10**7):
        monkeypatch.setattr(mmgibbs.engines.coloured_gpu.engine, "marker_bytes", lambda *_, n=of_markers: n)
        needed.append(counted(folder, of_snps("rr"), monkeypatch)["device"]["bytes"])
    assert needed[1] - needed[0] == 10**7


def test_the_matrix_of_engine_hybrid_is_counted(folder, device, monkeypatch):
    """Where it does not fit, it passes through the device in every sweep, and the bound is not that of the device."""
    counts = counted(folder, ACCEPTED["engine hybrid"], monkeypatch)
    of_device = counts["device"]
    assert of_device["bound"]["bytes"] == of_device["bytes"] + of_device["matrix_bytes"] > of_device["matrix_bytes"] > 0
    needed = f"{of_device['bytes']:,} bytes needed, and at least {of_device['matrix_bytes']:,} for the matrix"
    assert f"{needed}; a sweep of the effects moves" in counts_as_text(counts)
    device.free_bytes = lambda: of_device["bound"]["bytes"] - 1
    counts = counted(folder, ACCEPTED["engine hybrid"], monkeypatch)
    assert "bound" not in counts["device"]
    assert f"{needed}, which does not fit and is copied there in every sweep\n" in counts_as_text(counts) + "\n"


def test_every_kind_is_here():
    """Both lists together have all that an analysis can ask for."""
    names = {name.partition(",")[0] for name in (*ACCEPTED, *REFUSED)}
    kinds_of = {"relationship": KINDS, "prior": MARKER_PRIORS, "structure": choices(Structure, "kind")}
    kinds_of |= {"type": choices(Trait, "type")} | {key: choices(Sampler, key) for key in SETTINGS}
    for what, kinds in kinds_of.items():
        assert {f"{what} {kind}" for kind in kinds} - names == set()


REGRESSIONS = {
    "bayesian_lasso": {"response": "gain"},
    "horseshoe_probit": {"response": "ill"},
    "multinomial_pg": {"response": "score"},
    "multinomial_hmc": {"response": "score"},
    "hierarchical_slice": {"response": "ill", "groups": "herd"},
}
WITH_KERNELS = {
    "bayesian_lasso": [{}],
    "horseshoe_probit": [{}, {"collapsed": False}, {"expansion": False, "collapsed": False}, {"slab_scale": 2.0}],
    "multinomial_pg": [{}],
    "multinomial_hmc": [{}, {"mass": "diagonal"}],
    "hierarchical_slice": [{}, {"method": "slice"}, {"method": "polya_gamma"}, {"family": "poisson"}],
}


@pytest.mark.parametrize("plugin", plugin_names())
def test_regressions(folder, plugin, monkeypatch):
    """Those without kernels run as array operations. What is chosen is the same as on the CPU, or says why not."""
    monkeypatch.chdir(folder)
    for options in WITH_KERNELS.get(plugin, []):
        model = {"plugin": plugin, "predictors": ["age", "fat", "milk"], "options": options} | REGRESSIONS[plugin]
        given = {
            "name": "gpu", "data": {"phenotypes": str(folder / "records.csv")}, "model": model,
            "sampler": {"chains": 1, "burn_in": 5, "samples": 20, "thin": 1}, "output": {"directory": "run"},
        }  # fmt: skip
        on_cpu, on_gpu = (check(given | {"sampler": given["sampler"] | {"device": d}}) for d in ("cpu", "gpu"))
        for name, value in on_gpu["options"].items():
            same = value == on_cpu["options"][name]
            assert same or "GPU" in on_gpu["options_chosen_because"][name]
    assert plugin in REGRESSIONS
