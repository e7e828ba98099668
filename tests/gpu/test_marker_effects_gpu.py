"""SNP effects on a real device: the chain of the serial engine up to rounding, by each kind of draws."""

import pytest
from helpers.mixed_model_chains import assert_same_results
from helpers.mixed_models import equations_of
from unit.engines.test_marker_effects_device import KEY, R, joint_model, model_of

from mmgibbs.engines.coloured_gpu.engine import StructuredGpuEngine
from mmgibbs.engines.serial import SerialEngine
from mmgibbs.sampler.chain import Chain
from mmgibbs.sampler.schedule import Schedule

pytestmark = pytest.mark.gpu
MODELS = {
    "normals": lambda: model_of("rr"),
    "classes": lambda: model_of("bayes_r", "bayes_b"),
    "all traits at once": lambda: joint_model("joint"),
    "one trait at a time": lambda: joint_model("one_by_one"),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_chain_of_the_serial_engine(name, device):
    model = MODELS[name]()
    equations = equations_of(model)
    chains = [
        Chain(model, engine, Schedule(6, 30, 2, refresh_every=7), KEY)
        for engine in (SerialEngine(equations), StructuredGpuEngine(equations, device=device))
    ]
    for chain in chains:
        chain.engine.set_variances([None], R)
        chain.advance(20)
    assert_same_results(*reversed(chains))
