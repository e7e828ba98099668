"""No compiled kernel outlives the sources that it was made from."""

import gc
import os
import shutil
import subprocess
import sys
import time

import pytest
from helpers.support import ROOT

from mmgibbs.machine import kernel_cache
from mmgibbs.machine.kernel_cache import PREFIX, digest, sources_of_kernels, use_folder_of_these_sources


@pytest.fixture
def numba_told(monkeypatch):
    """Restores what the function sets."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", numba.config.CACHE_DIR)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "restored at the end")
    return lambda: (os.environ["NUMBA_CACHE_DIR"], numba.config.CACHE_DIR)


def test_kernels_and_all_that_they_import_count(tmp_path):
    """Through packages, lists in parentheses and the pedigree package; nothing else does."""
    files = {
        "mmgibbs/__init__.py": "",
        "mmgibbs/kernel.py": "from numba import njit\nfrom mmgibbs.room import (\n    helper,\n    "
        "thing,\n)\nimport pedigree.far\n",
        "mmgibbs/room/__init__.py": "thing = 1\n",
        "mmgibbs/room/helper.py": "if True:\n    from mmgibbs.constants import SIZE\n",
        "mmgibbs/constants.py": "SIZE = 3\n",
        "pedigree/far.py": "x = 1\n",
        "mmgibbs/page.py": "from mmgibbs.kernel import f\n",
        "pedigree/near.py": "x = 1\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found, before = sources_of_kernels(tmp_path), digest(tmp_path)
    assert set(found) == {"mmgibbs.kernel", "mmgibbs.room", "mmgibbs.room.helper", "mmgibbs.constants", "pedigree.far"}
    (tmp_path / "mmgibbs/page.py").write_text("another page")
    assert digest(tmp_path) == before
    (tmp_path / "mmgibbs/constants.py").write_text("SIZE = 4\n")
    assert digest(tmp_path) != before


def test_the_program_has_its_kernels_among_them():
    found = sources_of_kernels(ROOT)
    assert {
        "mmgibbs.draws.philox",
        "mmgibbs.engines.coloured.rows",
        "mmgibbs.model.design",
        "pedigree.relationship",
        "mmgibbs.machine.threads",
    } <= set(found)
    assert not {"mmgibbs.cli", "mmgibbs.config.load", "mmgibbs.report.page", "mmgibbs.machine.kernel_cache"} & set(
        found
    )


def test_the_folder(tmp_path, monkeypatch, numba_told):
    name = PREFIX + digest(ROOT)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    use_folder_of_these_sources()
    assert numba_told() == (str(ROOT / "mmgibbs/__pycache__" / name),) * 2
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # also where the process that started this one has set it
        use_folder_of_these_sources()
        assert numba_told() == (str(tmp_path / name),) * 2
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / f"{PREFIX}of-another-version"))
    use_folder_of_these_sources()
    assert numba_told() == (str(tmp_path / name),) * 2
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_cache.os, "access", lambda *_: False)
    use_folder_of_these_sources()
    assert numba_told() == (str(tmp_path / "cache/mmgibbs" / name),) * 2


def test_what_nobody_uses_any_more_is_removed(tmp_path, monkeypatch, numba_told):
    old = time.time() - 40 * 86400
    for folder, age in (("old", old), ("recent", None), ("used", old)):
        (tmp_path / f"{PREFIX}{folder}").mkdir()
        (tmp_path / f"{PREFIX}{folder}/kernel.nbc").touch()
        if age:
            os.utime(tmp_path / f"{PREFIX}{folder}/kernel.nbc", (age, age))
            os.utime(tmp_path / f"{PREFIX}{folder}", (age, age))
    (tmp_path / f"{PREFIX}used/new.nbc").touch()
    (tmp_path / "not ours").mkdir()
    os.utime(tmp_path / "not ours", (old, old))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    use_folder_of_these_sources()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{PREFIX}recent", f"{PREFIX}used", "not ours"]


TOLD = """
import os, sys, mmgibbs
from mmgibbs.machine import kernel_cache
assert "NUMBA_CACHE_DIR" not in os.environ and "hashlib" not in sys.modules
waits = lambda: any(type(finder).__name__ == "_BeforeNumba" for finder in sys.meta_path)
assert waits()
import numba
assert not waits()
assert numba.config.CACHE_DIR == os.environ["NUMBA_CACHE_DIR"] and kernel_cache.PREFIX in numba.config.CACHE_DIR
"""


def test_sources_are_read_when_somebody_imports_numba_and_not_before():
    """A help text needs no kernels."""
    # a measurement of coverage would import hashlib before the program begins
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR" and not k.startswith("COVERAGE_")}
    subprocess.run([sys.executable, "-c", TOLD], env=environment, cwd=ROOT, check=True)


NAMED = """
import numba, os, pathlib, mmgibbs
from mmgibbs.draws.exponential import exponential_pair
exponential_pair(1, 2, 3, 4, 5, 6)
files = [path.name for path in pathlib.Path(numba.config.CACHE_DIR).glob("*/*.nbc")]
assert files and all(name.startswith(f"{os.getpid()}.") for name in files), files
"""


def test_files_of_kernels_have_the_number_of_their_process(tmp_path):
    """Two processes that compile forms of one function at once write different files."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", NAMED], env=environment, cwd=ROOT, check=True)


SHOW = "from mmgibbs.draws.exponential import exponential_pair as f; print(f(1, 2, 3, 4, 5, 6)[0])"


def after_an_upgrade(folder, told: bool = True) -> tuple[float, float]:
    """A kernel's value before and after a function that it calls, in another file, has changed: the logarithm is
    doubled.

    told: whether Numba is told of the folder.
    """
    for package in kernel_cache.PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    if not told:
        change(folder / "mmgibbs/__init__.py", "prepare_for_kernels()  #", "pass  #")
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(folder)}

    def value() -> float:
        return float(
            subprocess.run(
                [sys.executable, "-c", SHOW], env=environment, cwd=folder, check=True, capture_output=True, text=True
            ).stdout
        )

    before = value()
    change(
        folder / "mmgibbs/draws/elementary.py",
        "return e * LN2_HIGH - ((s * (f - y * p) - e * LN2_LOW) - f)",
        "return 2.0 * (e * LN2_HIGH - ((s * (f - y * p) - e * LN2_LOW) - f))",
    )
    return before, value()


def change(path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_an_upgrade_of_a_function_reaches_the_kernels_that_call_it(tmp_path):
    before, after = after_an_upgrade(tmp_path)
    assert after == 2 * before


@pytest.mark.slow
def test_otherwise_it_would_not(tmp_path):
    before, after = after_an_upgrade(tmp_path, told=False)
    assert after == before


def test_garbage_waits_where_it_is_looked_for():
    with pytest.raises(ZeroDivisionError), kernel_cache.garbage_waits():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with kernel_cache.garbage_waits():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
