"""Which values of a parametrised test run by default: the rest is marked slow, and runs every night."""

import pytest


def first(n, values):
    """The first n values by default, the others with `pytest -m slow`: for values that take the same path.

    Several arguments of a test are a tuple.
    """
    return [
        value if i < n else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for i, value in enumerate(values)
    ]
