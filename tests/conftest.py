"""Options that pyproject.toml gives to pytest-xdist, taken and ignored where it is not there:
tests/gpu runs on a bare node.
"""


def pytest_addoption(parser):
    try:
        import xdist  # noqa: F401
    except ImportError:
        for option in ("--numprocesses", "--dist"):
            parser.addoption(option, help="ignored: pytest-xdist is not installed")
