"""No two draws of a run share a counter and a key, in models of every kind: see tests/helpers/key_recorder.py."""

from pathlib import Path

import numpy as np
import pytest
from helpers.draw_batches import compiler
from helpers.key_models import ENGINES, MODELS, STRUCTURES, TRIALS
from helpers.key_recorder import find_overlaps, record
from unit.engines.test_marker_effects_device import JOINT_PRIORS, PRIORS
from verification.draw_digests import cases

from mmgibbs.draws import purpose

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
SHORT = {"chains": 1, "burn_in": 22, "samples": 4, "thin": 1, "threads": 1}
# Draws that are made anew where they are needed, from the same numbers: missing residuals of a sweep, and the records
# that REML by Monte Carlo simulates at other variances.
MADE_ANEW = [purpose.AUGMENT, purpose.SIMULATED_RECORD]
RUN = """
import tempfile
import mmgibbs
with tempfile.TemporaryDirectory() as folder:
    mmgibbs.run({path!r}, {settings!r}, directory=folder + "/run", progress=False)
"""
TRIAL = "from helpers.key_models import run_trial\nrun_trial({name!r})\n"
CHAIN = "from helpers.key_models import advance\nadvance({name!r}, {engine!r})\n"
SNPS = """
from helpers.key_models import advance_model
from unit.engines.test_marker_effects_device import joint_model, model_of
advance_model({model})
"""


def config_texts():
    """Every analysis of configs/, and the engines and methods that it can be run with."""
    out, seen = {}, set()
    for name, (path, settings) in cases(ROOT, full=False).items():
        is_blup, of_sampler = "method: blup" in path.read_text(), {k: v for k, v in settings.items() if "." not in k}
        traits = of_sampler.pop("traits", None)
        sampler = of_sampler if is_blup or "method" in of_sampler else of_sampler | SHORT
        given = [f"sampler.{k}={v}" for k, v in sampler.items()]
        given += [f"{k}={v}" for k, v in settings.items() if "." in k] + ([f"traits={traits}"] if traits else [])
        if (str(path), *sorted(given)) not in seen:
            seen.add((str(path), *sorted(given)))
            out[f"configs: {name}"] = RUN.format(path=str(path.resolve()), settings=given)
    return out


OPTIONS = {  # of regressions, beside those of configs/
    "hierarchical": ("method=slice",),
    "horseshoe_probit": ("slab_scale=2", "collapsed=true"),
}
EVERY_PURPOSE = (
    "trial: correlated", "trial: marginal", "trial: two", "trial: REML", "trial: prediction", "trial: pcg",
    "trial: ar1", "serial: half-t", "serial: ordinal in", "SNPs: equal", "SNPs: horseshoe", "configs: hierarchical",
    "configs: horseshoe_probit", "configs: lasso", "configs: multinomial",
)  # fmt: skip
TEXTS = config_texts()
TEXTS |= {
    f"configs: {name}, {option}": RUN.format(
        path=str(ROOT / "configs" / f"{name}.yaml"),
        settings=[f"model.options.{option}", *(f"sampler.{k}={v}" for k, v in SHORT.items())],
    )
    for name, options in OPTIONS.items()
    for option in options
}
TEXTS |= {f"trial: {name}": TRIAL.format(name=name) for name in (*TRIALS, *STRUCTURES)}
TEXTS |= {
    f"{engine}: {name}": CHAIN.format(name=name, engine=engine)
    for name in MODELS
    for engine in ENGINES
    if engine in ("serial", "structured") or ("ordinal" not in name and (engine != "marginal" or "half-t" not in name))
}
TEXTS |= {f"SNPs: {prior}": SNPS.format(model=f"model_of({prior!r})") for prior in PRIORS}
TEXTS |= {"SNPs: two terms": SNPS.format(model="model_of('bayes_r', 'bayes_a')")}
TEXTS |= {"SNPs: equal": SNPS.format(model="model_of('bayes_r', n_equal=3)")}
TEXTS |= {f"SNPs: {kind}": SNPS.format(model=f"joint_model({kind!r})") for kind in JOINT_PRIORS}


@pytest.fixture(scope="module")
def recorded(request):
    """Draws of the texts that the selected tests need, recorded in one process: each kernel is compiled once."""
    selected = [item for item in request.session.items if item.path == request.path]
    needed = {item.callspec.params["name"] for item in selected if hasattr(item, "callspec")}
    if any(item.name == test_every_purpose_is_among_them.__name__ for item in selected):
        needed |= {name for name in TEXTS if name.startswith(EVERY_PURPOSE)}
    return record({name: text for name, text in TEXTS.items() if name in needed}, compiler(), timeout=3000)


@pytest.mark.parametrize("name", TEXTS)
def test_no_two_draws_of_a_run_share_a_key(recorded, name):
    overlaps = find_overlaps(recorded[name])
    purposes = overlaps[:, 2] >> 24
    is_start = (purposes == purpose.PREDICTED) & (overlaps[:, 0] == 0)  # each chain of a process has one
    # A block of one effect makes all normals of its levels and takes those of its own component: tests/parity holds
    # its draws equal to those of the serial engine.
    made_anew = [*MADE_ANEW, purpose.LOCATION] if "partition=effect" in name else MADE_ANEW
    assert overlaps[~np.isin(purposes, made_anew) & ~is_start].tolist() == []


def test_every_purpose_is_among_them(recorded):
    names = {value: name for name, value in vars(purpose).items() if name.isupper() and isinstance(value, int)}
    seen = {names[p] for drawn in recorded.values() for p in np.unique(drawn[:, 2] >> 24)}
    assert set(names.values()) - seen == {"MAX_TERM"}
