"""A stand-in for the module `cupy`, with a runtime that answers as is asked."""

import sys
import types


class CUDARuntimeError(RuntimeError):
    pass


def install_cupy(monkeypatch, driver=13000, needed=13020, devices=1):
    """The module; devices may be an exception."""

    def count():
        if isinstance(devices, Exception):
            raise devices
        return devices

    versions = {"driverGetVersion": lambda: driver, "runtimeGetVersion": lambda: needed, "getDeviceCount": count}
    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(**versions, CUDARuntimeError=CUDARuntimeError))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module
