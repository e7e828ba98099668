"""A module with one line of its source changed: a sampler that the tests must find wrong."""

from __future__ import annotations

import inspect
import itertools
import re
import sys
from types import ModuleType

_number = itertools.count()


def mutant(module, right: str, wrong: str, compiled: bool = True) -> ModuleType:
    """`module` anew, from its source with `right`, which occurs once, replaced by `wrong`.

    The module itself stays as it is. compiled: kernels are; without, small examples need no seconds for that.
    """
    source = inspect.getsource(module)
    assert source.count(right) == 1, f"found {right!r} {source.count(right)} times in {module.__name__}, needed once"
    spoilt = ModuleType(f"{module.__name__}_mutant_{next(_number)}")
    sys.modules[spoilt.__name__] = spoilt  # dataclasses look their module up
    source = source.replace(right, wrong)
    if not compiled:
        source = re.sub(r"@kernel(\([^)]*\))?\n", "", source)
    exec(compile(source, f"<mutant of {module.__name__}>", "exec"), spoilt.__dict__)
    return spoilt
