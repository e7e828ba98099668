"""What `pytest` does in this repository: a tenth of the slow tests may be asked for, workers share compiled kernels,
and options of pytest-xdist are taken where it is not there (tests/gpu runs on a bare node).
"""

import sys
import time
import zlib

import pytest

TENTHS = 10
EXCHANGE_SECONDS = 3.0  # between two looks at what a worker has compiled: to save all kernels takes a tenth of a second
EXCHANGED = pytest.StashKey[list[float]]()


def pytest_addoption(parser):
    parser.addoption(
        "--tenth",
        type=int,
        choices=range(TENTHS),
        metavar="N",
        help="of the slow tests run only tenth N, 0 to 9; a test stays in its tenth while its name stays",
    )
    try:
        import xdist  # noqa: F401
    except ImportError:
        for option in ("--numprocesses", "--dist"):
            parser.addoption(option, help="ignored: pytest-xdist is not installed")


def pytest_configure():
    try:
        from hypothesis import settings
    except ImportError:
        return
    settings.register_profile("no deadline", deadline=None)  # an example waits where other tests take the cores
    settings.load_profile("no deadline")


def tenth_of(nodeid: str) -> int:
    """The tenth that a test belongs to: the same in every process and on every system."""
    return zlib.crc32(nodeid.encode()) % TENTHS


def pytest_report_header(config):
    tenth = config.getoption("tenth")
    return None if tenth is None else f"slow tests: tenth {tenth} of 0 to {TENTHS - 1} (--tenth {tenth})"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    tenth = config.getoption("tenth")
    if tenth is None:
        return
    others = [item for item in items if item.get_closest_marker("slow") and tenth_of(item.nodeid) != tenth]
    left_out = {item.nodeid for item in others}
    items[:] = [item for item in items if item.nodeid not in left_out]
    config.hook.pytest_deselected(items=others)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Workers share compiled kernels: each takes those that others have saved, and saves its own, between tests."""
    kernels = sys.modules.get("mmgibbs.pedigree.kernel_store")
    if kernels is None:
        return (yield)
    store = kernels.kernel_store()
    store.load()
    result = yield
    of_worker = item.config.stash.setdefault(EXCHANGED, [time.monotonic()])
    if nextitem is None or nextitem.path != item.path or time.monotonic() > of_worker[0] + EXCHANGE_SECONDS:
        if store.n_compiled:
            store.exchange()
        of_worker[0] = time.monotonic()
    return result
