"""What is changed of Numba gives the same answers."""

import subprocess
import sys
from importlib.util import module_from_spec
from types import SimpleNamespace

from helpers.support import ROOT

from mmgibbs.machine import numba_changes
from mmgibbs.machine.numba_changes import compare_only_options_that_are_set, tell_only_who_listens

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


# The functions that are changed, if any is
WHOSE = """
from numba.core import caching
changed = (event.start_event, event.end_event, targetconfig.TargetConfig.__eq__, targetconfig.TargetConfig.__hash__,
           caching.IndexDataCacheFile._data_name)
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
    command = [sys.executable, "-c", before + SAME + WHOSE]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_options_and_events_are_as_before():
    """Of a Python with Numba alone, and of one that has imported mmgibbs before it, or after."""
    plain, *changed = (said(before) for before in ("", "import mmgibbs\n", "import numba, mmgibbs\n"))
    modules = [lines.pop(5) for lines in (plain, *changed)]
    assert changed == [plain, plain]
    assert "True" in plain[0] and "False" in plain[0] and plain[1:3] == ["False True 3", "True True True True"]
    assert plain[3] == "start numba:llvm_lock 12" and plain[4].startswith("end numba:llvm_lock 12")
    assert "is not a valid event kind" in plain[5] and plain[6].startswith("end numba:compile 22") and len(plain) == 7
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
