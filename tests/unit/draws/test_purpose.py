"""Counter words and keys; and that no two draws of a small run share a counter."""

import pytest

from mmgibbs.draws import purpose as pu
from mmgibbs.draws.purpose import stream

PURPOSES = {
    name: value for name, value in vars(pu).items() if name.isupper() and isinstance(value, int) and name[0] != "_"
}


def test_purposes_are_the_contract_and_differ():
    contract = {"LOCATION": 1, "AUGMENT": 2, "LIABILITY": 3, "VARIANCE": 4, "INTERWEAVE": 5, "PERTURB": 6}
    assert {name: PURPOSES[name] for name in contract} == contract
    steps = [v for name, v in PURPOSES.items() if name != "MAX_TERM"]
    assert len(set(steps)) == len(steps)
    assert all(1 <= v <= 255 for v in steps)
    assert min(v for name, v in PURPOSES.items() if name.startswith("REGRESSION")) == 16


def test_stream_joins_purpose_and_term():
    assert stream(pu.VARIANCE, 5) == 0x04000005
    assert stream(255, pu.MAX_TERM) == 0xFFFFFFFF


@pytest.mark.parametrize(("purpose", "term"), [(0, 0), (256, 0), (-1, 0), (1, -1), (1, 1 << 24)])
def test_stream_refuses(purpose, term):
    with pytest.raises(ValueError, match="found .* needed"):
        stream(purpose, term)
