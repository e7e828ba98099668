"""The device of this machine; a visible skip where there is none."""

import pytest

from mmgibbs.errors import DeviceError
from mmgibbs.machine.device import Device


@pytest.fixture(scope="session")
def device():
    try:
        return Device()
    except DeviceError as error:
        pytest.skip(f"no CUDA device: {error}")
