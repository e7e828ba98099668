"""Ten runs with `--tenth` are all slow tests, each once, whatever the default ones are."""

import shutil
import subprocess
import sys

from helpers.support import ROOT

MODULE = """\
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("n", range(200))
def test_slow(n): pass

def test_quick(): pass
"""
COLLECT = """\
import pytest

class Names:
    def pytest_collection_finish(self, session):
        print("names", *[item.nodeid for item in session.items], sep="\\t")

for tenth in [None, *range(10)]:
    options = [] if tenth is None else ["--tenth", str(tenth)]
    pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *options, "test_some.py"], plugins=[Names()])
"""


def test_ten_tenths_are_all_slow_tests(tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (tmp_path / "test_some.py").write_text(MODULE)
    shown = subprocess.run([sys.executable, "-c", COLLECT], cwd=tmp_path, capture_output=True, text=True, check=True)
    every, *tenths = [set(line.split("\t")[1:]) for line in shown.stdout.splitlines() if line.startswith("names\t")]
    quick = {"test_some.py::test_quick"}
    assert len(every) == 201 and len(tenths) == 10
    assert all(quick <= tenth and 8 < len(tenth) < 40 for tenth in tenths)
    assert sum(len(tenth - quick) for tenth in tenths) == 200 and set.union(*tenths) == every
