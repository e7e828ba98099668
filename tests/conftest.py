"""Options that pyproject.toml gives to pytest-xdist, taken and ignored where it is not there:
tests/gpu runs on a bare node. Kernels are compiled, however little data a test has.
"""

import pytest


def pytest_addoption(parser):
    try:
        import xdist  # noqa: F401
    except ImportError:
        for option in ("--numprocesses", "--dist"):
            parser.addoption(option, help="ignored: pytest-xdist is not installed")


@pytest.fixture(autouse=True, scope="session")
def compiled_over_little_data():
    """Tests have little data, and mean the kernels: pedigree/little_work.py would take their Python functions, as
    it does in commands that tests start.
    """
    from pedigree import little_work

    little_work.MOST_STEPS = -1
