"""What is changed of Numba gives the same answers."""

import subprocess
import sys
from importlib import import_module

import pytest
from helpers.support import ROOT

from mmgibbs.machine.numba_changes import CHANGES

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


def said(before: str) -> str:
    command = [sys.executable, "-c", before + SAME]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_options_and_events_are_as_before():
    """Of a Python with Numba alone, and of one that has imported mmgibbs before it, or after."""
    found = said("")
    assert "True" in found and "False" in found and "start numba:llvm_lock 12" in found and " 13" not in found
    assert said("import mmgibbs\n") == found == said("import numba, mmgibbs\n")


@pytest.mark.parametrize("name", CHANGES)
def test_numba_has_what_is_changed(name):
    """A later Numba without it is left as it is, without a word; here it is said."""
    module = import_module(name)
    needed = {
        "numba.core.caching": ["IndexDataCacheFile"],
        "numba.core.targetconfig": ["TargetConfig"],
        "numba.core.event": ["start_event", "end_event", "_registered"],
    }
    assert all(hasattr(module, what) for what in needed[name])
