"""What is changed of Numba gives the same answers."""

import subprocess
import sys
from importlib.util import module_from_spec
from types import SimpleNamespace

from helpers.support import ROOT

from mmgibbs.machine import numba_changes
from mmgibbs.machine.numba_changes import (
    CHANGES,
    compare_only_options_that_are_set,
    find_lives_of_variables_when_asked,
    simplify_only_functions_with_a_body,
    tell_only_who_listens,
)

SAME = """
import sys
from numba.core import compiler, event, targetconfig
plain = compiler.Flags(), compiler.Flags(), compiler.Flags(), compiler.Flags()
plain[1].nrt = True
plain[2].nrt = False  # what is said and what goes without saying are the same
plain[3].fastmath = True
print(*(a == b for a in plain for b in plain), *(hash(a) == hash(b) for a in plain for b in plain))
print(plain[0] == 1, plain[0] != plain[3], len({*plain}))
print(*(sorted(hash(a) == hash(tuple(sorted(a.values()))) for a in plain)))


class Listener(event.Listener):
    def on_start(self, event):
        print("start", event.kind, event.data)

    def on_end(self, event):
        print("end", event.kind, event.data, event.is_failed)


event.start_event("numba:llvm_lock", 11)
with event.install_listener("numba:llvm_lock", Listener()), event.trigger_event("numba:llvm_lock", 12):
    pass
event.end_event("numba:llvm_lock", 13)
"""


# Functions with all kinds of code, compiled, whose code and answers are to be the same
COMPILED = """
import hashlib, re
import numpy as np
from numba import njit, objmode
from numba.core import codegen, postproc
from numba.core.typing import npydecl
from numba.np import linalg


def numbers(x, n):
    total = 0.0
    for i in range(n):
        if i % 2 == 0 and x[i] > 0.5:
            total += x[i] ** 2 - -x[i]
        elif not x[i] < 0.1:
            total = max(total, x[i] / (1 + i))
    return total, x[:n] * 2.0 + x[:n], np.add(x[0], 1)


def generated(n):
    for i in range(n):
        yield i * i


def in_python(x):
    y = x + 1
    with objmode(z="float64"):
        z = float(repr(y))
    return z + y


x = np.linspace(0, 1, 9)
kernel = njit(numbers)
print(kernel(x, 8), "scipy.linalg" in sys.modules)
print(list(njit(generated)(5)), njit(in_python)(1.5), njit(lambda a: np.dot(a, a).sum())(np.eye(3)))
instructions = re.findall(r"^\\t([a-z]\\w+)", kernel.inspect_asm(kernel.signatures[0]), re.MULTILINE)  # no addresses
print(len(instructions), hashlib.sha256(" ".join(instructions).encode()).hexdigest())
"""

# The functions that are changed, if any is
WHOSE = """
from numba.core import caching
changed = (event.start_event, event.end_event, event.install_timer, targetconfig.TargetConfig.__eq__,
           targetconfig.TargetConfig.__hash__, targetconfig.TargetConfig.values, caching.IndexDataCacheFile._data_name,
           postproc.PostProcessor.run, codegen.CPUCodeLibrary._optimize_functions, linalg.ensure_blas,
           npydecl.NumpyRulesArrayOperator.generic)
print(*(function.__module__ for function in changed))
try:
    event.start_event("numba:no such kind")
except ValueError as error:
    print(error)
event.start_event("numba:compile", 21)
listener = Listener()
event.register("numba:compile", listener)
event.end_event("numba:compile", 22)
"""


def said(before: str) -> list[str]:
    command = [sys.executable, "-c", before + SAME + COMPILED + WHOSE]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_options_events_and_machine_code_are_as_before():
    """Of a Python with Numba alone, and of one that has imported mmgibbs before it, or after."""
    plain, *changed = (said(before) for before in ("", "import mmgibbs\n", "import numba, mmgibbs\n"))
    modules, numbers = [lines.pop(8) for lines in (plain, *changed)], [lines.pop(5) for lines in (plain, *changed)]
    assert changed == [plain, plain]
    assert "True" in plain[0] and "False" in plain[0] and plain[1:3] == ["False True 3", "True True True True"]
    assert plain[3] == "start numba:llvm_lock 12" and plain[4].startswith("end numba:llvm_lock 12")
    assert numbers[1:] == [numbers[0].replace("True", "False")] * 2 and numbers[0].endswith("True")  # SciPy is not read
    assert plain[5] == "[0, 1, 4, 9, 16] 5.0 3.0" and int(plain[6].split()[0]) > 500  # instructions
    assert "is not a valid event kind" in plain[7] and plain[8].startswith("end numba:compile 22") and len(plain) == 9
    assert "mmgibbs" not in modules[0] and set(modules[1].split()) == {"mmgibbs.machine.numba_changes"}
    assert modules[1] == modules[2]


def test_a_numba_that_keeps_them_in_another_way_is_left_as_it_is():
    class TargetConfig:
        __slots__ = ["_options"]

    equal = TargetConfig.__eq__
    compare_only_options_that_are_set(SimpleNamespace(TargetConfig=TargetConfig))
    assert TargetConfig.__eq__ is equal
    event = SimpleNamespace(start_event=1, end_event=2)
    tell_only_who_listens(event)
    assert (event.start_event, event.end_event) == (1, 2)
    for change in CHANGES.values():
        nothing = SimpleNamespace()
        if change is not numba_changes.name_kernels_by_process:
            change(nothing)
        assert not vars(nothing)
    event = SimpleNamespace(start_event=1, end_event=2, _registered={}, _builtin_kinds=set())  # without timers
    tell_only_who_listens(event)
    assert (event.start_event, event.end_event) == (1, 2)
    for simplify, passes in ((lambda self: 1, lambda self, **kwargs: 1), (lambda self, ll_module: 1, lambda self: 1)):
        library, maker = SimpleNamespace(_optimize_functions=simplify), SimpleNamespace(_function_pass_manager=passes)
        simplify_only_functions_with_a_body(SimpleNamespace(CPUCodeLibrary=library, CPUCodegen=maker))
        assert library._optimize_functions is simplify
    for run in (lambda self: 1, lambda self, emit_dels=False: 1):
        kind = SimpleNamespace(run=run)
        find_lives_of_variables_when_asked(SimpleNamespace(PostProcessor=kind, VariableLifetime=1))
        assert kind.run is run


def test_a_module_that_was_found_twice_is_changed_once(monkeypatch):
    """And the finder leaves even where somebody has put the list of finders back meanwhile."""
    changed = []
    finder = numba_changes._AsTheyAreImported({"colorsys": changed.append})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    first, second = finder.find_spec("colorsys"), finder.find_spec("colorsys")
    first.loader.exec_module(module_from_spec(first))
    second.loader.exec_module(module_from_spec(second))
    assert len(changed) == 1 and finder not in sys.meta_path and finder.find_spec("colorsys") is None
