"""A module with one line of its source changed: a sampler that the tests must find wrong."""

from __future__ import annotations

import inspect
import itertools
import sys
from types import ModuleType

_number = itertools.count()


def mutant(module, right: str, wrong: str) -> ModuleType:
    """`module` anew, from its source with `right`, which occurs once, replaced by `wrong`.

    The module itself stays as it is.
    """
    source = inspect.getsource(module)
    assert source.count(right) == 1, f"found {right!r} {source.count(right)} times in {module.__name__}, needed once"
    spoilt = ModuleType(f"{module.__name__}_mutant_{next(_number)}")
    sys.modules[spoilt.__name__] = spoilt  # dataclasses look their module up
    exec(compile(source.replace(right, wrong), f"<mutant of {module.__name__}>", "exec"), spoilt.__dict__)
    return spoilt
