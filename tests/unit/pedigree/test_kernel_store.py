"""Compiled kernels are kept for later processes, whatever happens to the folder and the file they are kept in."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile

import numba
import pytest
from helpers.selection import first
from helpers.support import ROOT

from mmgibbs.pedigree import kernel_store, kernels
from mmgibbs.pedigree.kernel_store import PREFIX, KernelStore, digest, sources_of_kernels

NAME = f"{PREFIX}of-a-test"


def compile_kernel(store, kernel="room/add", forms=(b"code",)):
    """What Numba leaves of a kernel that it compiles: an index, and the code of each form."""
    path = store.folder / f"{kernel}-7.py311"
    path.parent.mkdir(exist_ok=True)
    path.with_name(f"{path.name}.nbi").write_bytes(b"index of " + b",".join(forms))
    for number, form in enumerate(forms, 1):
        path.with_name(f"{path.name}.{number}.nbc").write_bytes(form)


def contents(store):
    return {path.name: path.read_bytes() for path in sorted(store.folder.glob("*/*"))}


@pytest.fixture
def make(tmp_path):
    """Stores of processes, as it were, that share folders."""
    stores = []

    def made(*folders):
        stores.append(KernelStore(NAME, [tmp_path / name for name in folders or ["cache"]]))
        return stores[-1]

    yield made
    for store in stores:
        shutil.rmtree(store.folder, ignore_errors=True)


def test_what_one_process_compiles_the_next_one_has(make, tmp_path):
    first = make()
    assert not first.has_kernel() and first.n_compiled == 0
    compile_kernel(first, forms=(b"one", b"two"))
    assert first.n_compiled == 1
    first.save()
    second = make()
    assert contents(second) == contents(first) and second.folder != first.folder
    assert second.has_kernel("add") and second.has_kernel() and not second.has_kernel("subtract")
    assert second.n_compiled == first.n_compiled == 0 and first.is_lasting
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == [f"{NAME}.lock", f"{NAME}.zip"]


def test_what_a_process_has_is_neither_read_nor_written_again(make, monkeypatch):
    """A folder of all kernels has 50 MB, and a small run looks for new ones several times."""
    first, second = make(), make()
    compile_kernel(first)
    first.save()
    second.load()
    old = {path: path.stat().st_mtime_ns for path in second.folder.glob("*/*")}
    compile_kernel(first, "room/other")
    read = []
    read_bytes = kernel_store.Path.read_bytes
    monkeypatch.setattr(kernel_store.Path, "read_bytes", lambda path: read.append(path.name) or read_bytes(path))
    first.save()
    first.save()
    assert sorted(read) == ["other-7.py311.1.nbc", "other-7.py311.nbi"]
    second.load()
    assert contents(second) == contents(first) and len(old) == 2
    assert {path: path.stat().st_mtime_ns for path in old} == old


def test_a_kernel_that_is_compiled_anew_is_saved(make):
    """The same names and sizes, as after a form that was damaged."""
    first = make()
    compile_kernel(first, forms=(b"one",))
    first.save()
    time.sleep(0.02)  # the clock of a file system may be that coarse
    compile_kernel(first, forms=(b"two",))
    assert first.n_compiled == 1
    first.save()
    assert first.n_compiled == 0 and contents(make()) == contents(first)


def test_of_two_forms_compiled_at_once_one_is_kept_whole(make):
    """An index that names one process's code beside the code of another would call the wrong function."""
    first, second = make(), make()
    compile_kernel(first, forms=(b"for float32",))
    compile_kernel(second, forms=(b"for float64",))
    compile_kernel(second, "room/other")
    first.save()
    second.save()
    third = contents(make())
    assert third["add-7.py311.nbi"] == b"index of for float32" and third["add-7.py311.1.nbc"] == b"for float32"
    assert third["other-7.py311.1.nbc"] == b"code"
    second.load()
    assert contents(second)["add-7.py311.1.nbc"] == b"for float64", "its own stays"


def test_processes_that_exchange_have_all_forms_in_the_end(make):
    """What the second has compiled at the same time is compiled again, and then added to what the first has."""
    first, second = make(), make()
    compile_kernel(first, forms=(b"for float32",))
    compile_kernel(second, forms=(b"for float64", b"for int8"))
    first.exchange()
    second.exchange()
    assert contents(second) == contents(first) and first.n_compiled == second.n_compiled == 0
    compile_kernel(second, forms=(b"for float32", b"for float64"))
    second.exchange()
    first.exchange()
    assert contents(make()) == contents(first) == contents(second)
    assert contents(first)["add-7.py311.2.nbc"] == b"for float64"


def test_an_exchange_that_cannot_save_loses_nothing(make, monkeypatch):
    store = make()
    monkeypatch.setattr(kernel_store, "_add", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
    compile_kernel(store)
    store.exchange()
    assert store.n_compiled == 1 and len(contents(store)) == 2


def damage(data: bytes, how: str, at: int) -> bytes:
    if how == "emptied":
        return b""
    if how == "cut":
        return data[:at]
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


@pytest.mark.parametrize("how", ["emptied", "cut", "changed"])
def test_damaged_entries_are_not_taken(how, make, tmp_path):
    """At each of many places: what is read is as it was saved, or absent; and the file is made good by the next
    process that compiles."""
    first = make()
    for number in range(5):
        compile_kernel(first, f"room/kernel{number}", (b"code %d" % number * 40,))
    first.save()
    good, archive = contents(first), tmp_path / "cache" / f"{NAME}.zip"
    whole, lost = archive.read_bytes(), 0
    for at in range(0, len(whole), 1 if how == "emptied" else 23):
        archive.write_bytes(damage(whole, how, at))
        entries = kernel_store._read(archive, {})
        assert all(good[name.split("/")[1]] == content for name, content in entries.items())
        lost += len(entries) < len(good)
        if how == "emptied":
            break
    assert lost
    archive.write_bytes(damage(whole, how, len(whole) // 2))
    second = make()
    compile_kernel(second, "room/new")
    second.save()
    assert contents(make()) == contents(second)


def test_nothing_outside_its_folder_is_written(make, tmp_path):
    (tmp_path / "cache").mkdir()
    with zipfile.ZipFile(tmp_path / "cache" / f"{NAME}.zip", "w") as archive:
        archive.writestr("../outside.nbi", b"x")
        archive.writestr("room/../../outside.nbi", b"x")
        archive.writestr("room/inside.nbi", b"x")
    assert contents(make()) == {"inside.nbi": b"x"}


def test_without_a_home_there_is_one_folder_less(monkeypatch, tmp_path):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(kernel_store.Path, "home", no_home)
    assert kernel_store._folders(str(tmp_path)) == [tmp_path]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert kernel_store._folders("") == [ROOT / "mmgibbs/pedigree/__pycache__", tmp_path / "cache/mmgibbs"]


@pytest.fixture
def not_writable(monkeypatch):
    """Folders whose path has 'read-only' in it; permissions do not stop the superuser."""
    plain = kernel_store._is_writable
    monkeypatch.setattr(kernel_store, "_is_writable", lambda folder: "read-only" not in str(folder) and plain(folder))


def test_a_folder_that_cannot_be_written_is_read(make, not_writable, tmp_path):
    """An image that others made, with kernels: what it lacks goes to the user's folder."""
    image = make("read-only")
    image._archive = tmp_path / "read-only" / f"{NAME}.zip"
    image._archive.parent.mkdir()
    compile_kernel(image)
    image.save()
    user = make("read-only", "home")
    assert user.has_kernel("add")
    compile_kernel(user, "room/other")
    user.save()
    assert make("read-only", "home").has_kernel("other") and make("read-only", "home").has_kernel("add")
    assert user.archive == tmp_path / "home" / f"{NAME}.zip"


def test_where_no_folder_can_be_written_the_processes_of_a_run_share_one(make, not_writable):
    parent, worker = make("read-only"), make("read-only")
    assert not parent.is_lasting
    worker.share(parent.archive)
    compile_kernel(worker)
    worker.save()
    parent.load()
    assert contents(parent).keys() >= contents(worker).keys() and parent.has_kernel("add")
    parent.close()
    assert not parent.folder.exists()


@pytest.mark.parametrize("why", ["not writable", "full"])
def test_nothing_is_kept_where_nothing_can_be_written(why, make, monkeypatch):
    full = shutil.disk_usage(".")._replace(free=1000)
    if why == "full":
        monkeypatch.setattr(kernel_store.shutil, "disk_usage", lambda folder: full)
    else:
        monkeypatch.setattr(kernel_store, "_is_writable", lambda folder: False)
    store = KernelStore(NAME, [])
    assert store.folder is None and store.archive is None and not store.has_kernel() and not store.is_lasting
    store.save()
    store.close()


def test_a_disk_that_fills_up_stops_nothing(make, monkeypatch, tmp_path):
    store = make()
    compile_kernel(store)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kernel_store.os, "replace", no_space)
        store.save()
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [f"{NAME}.lock"], "nothing half-written stays"
    store.save()
    assert make().has_kernel("add")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="locks of this system are not tried")
def test_other_first_runs_wait_until_kernels_are_saved(make):
    first, second = make(), make()
    order = []

    def other():
        with second.first_run():
            order.append("second")
            assert second.has_kernel("add")

    with first.first_run():
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.2)
        order.append("first")
        compile_kernel(first)
        first.save()  # which lets others go on, though this run goes on too
        thread.join(10)
        assert order == ["first", "second"]


def test_a_first_run_that_takes_too_long_is_not_waited_for(make, monkeypatch):
    monkeypatch.setattr(kernel_store, "FIRST_RUN_SECONDS", 0.1)
    monkeypatch.setattr(kernel_store, "SAVE_SECONDS", 0.1)
    first, second = make(), make()
    with first.first_run(), second.first_run():
        compile_kernel(second)


def test_files_of_other_sources_are_removed_after_a_month(make, tmp_path):
    (tmp_path / "cache").mkdir()
    old = time.time() - 40 * 86400
    for name, age in ((f"{PREFIX}old.zip", old), (f"{PREFIX}recent.zip", None), ("other.zip", old)):
        (tmp_path / "cache" / name).touch()
        if age:
            os.utime(tmp_path / "cache" / name, (age, age))
    store = make()
    assert store.archive.parent == tmp_path / "cache"
    assert sorted(p.name for p in (tmp_path / "cache").iterdir()) == [f"{PREFIX}recent.zip", "other.zip"]


def test_kernels_and_all_that_they_import_count(tmp_path):
    """Through packages, lists in parentheses and the pedigree package; nothing else does."""
    files = {
        "mmgibbs/__init__.py": "",
        "mmgibbs/kernel.py": "from mmgibbs.pedigree.kernels import kernel\nfrom mmgibbs.room import (\n    helper,\n"
        "    thing,\n)\nimport mmgibbs.pedigree.far\n",
        "mmgibbs/room/__init__.py": "thing = 1\n",
        "mmgibbs/room/helper.py": "if True:\n    from mmgibbs.constants import SIZE\n",
        "mmgibbs/constants.py": "SIZE = 3\n",
        "mmgibbs/pedigree/far.py": "x = 1\n",
        "mmgibbs/pedigree/kernels.py": "from numba import njit\n",
        "mmgibbs/page.py": "from mmgibbs.kernel import f\n",
        "mmgibbs/pedigree/near.py": "x = 1\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    sources, before = sources_of_kernels(tmp_path), digest(tmp_path)
    assert set(sources) == {
        "mmgibbs.kernel", "mmgibbs.room", "mmgibbs.room.helper", "mmgibbs.constants", "mmgibbs.pedigree.far",
        "mmgibbs.pedigree.kernels",
    }  # fmt: skip
    (tmp_path / "mmgibbs/page.py").write_text("another page")
    assert digest(tmp_path) == before != digest(tmp_path, "numba 1.0")
    (tmp_path / "mmgibbs/constants.py").write_text("SIZE = 4\n")
    assert digest(tmp_path) != before


def test_the_program_has_its_kernels_among_them():
    sources = set(sources_of_kernels(ROOT))
    assert {
        "mmgibbs.draws.philox", "mmgibbs.models.design", "mmgibbs.pedigree.relationship", "mmgibbs.machine.threads",
    } <= sources  # fmt: skip
    assert not {"mmgibbs.cli", "mmgibbs.config.load", "mmgibbs.report.page"} & sources


def test_kernels_of_others_stay_in_their_folder(tmp_path, monkeypatch):
    """And what Numba is told while a kernel of ours is made is put back, also after an error."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    source = tmp_path / "theirs.py"
    source.write_text("def f(x):\n    return x + 1\n")
    theirs: dict = {}
    exec(compile(source.read_text(), str(source), "exec"), theirs)
    ours = kernels.kernel(theirs["f"])
    assert ours(1) == 2 and str(tmp_path) == numba.config.CACHE_DIR
    assert ours.stats.cache_path.startswith(str(kernel_store.kernel_store().folder))
    other = numba.njit(cache=True)(theirs["f"])
    assert other(1) == 2 and other.stats.cache_path.startswith(str(tmp_path))
    monkeypatch.setattr(kernels, "njit", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kernels.kernel(theirs["f"])
    assert str(tmp_path) == numba.config.CACHE_DIR


def test_a_function_of_no_file_is_compiled_and_not_kept():
    namespace: dict = {}
    exec(compile("def f(x):\n    return x + 1\n", "<no file>", "exec"), namespace)
    made = kernels.kernel(namespace["f"])
    assert made(2) == 3 and not made.stats.cache_path


SHOW = """
import json, sys
from mmgibbs.draws.exponential import exponential_pair as f
print(json.dumps([f(1, 2, 3, 4, 5, 6)[0], len(f.stats.cache_hits)]))
"""


def show(folder, **environment):
    """(value, kernels that were kept) of a process of its own."""
    kept = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR" and not k.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=kept | environment, cwd=folder, check=True, capture_output=True, text=True
    )
    return tuple(json.loads(done.stdout))


@pytest.mark.parametrize("is_damaged", first(1, [False, True]))
def test_a_second_process_compiles_nothing_and_damage_is_made_good(is_damaged, tmp_path):
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    value, hits = show(ROOT, **places)
    assert hits == 0
    (archive,) = (tmp_path / "cache").glob("*.zip")
    if is_damaged:
        archive.write_bytes(archive.read_bytes()[:-100])
        assert show(ROOT, **places) == (value, 0)
    assert show(ROOT, **places) == (value, 1)
    assert list((tmp_path / "temporary").iterdir()) == []


FIRST = """
import sys
import numpy as np
from mmgibbs.pedigree.inbreeding import inbreeding
from mmgibbs.pedigree.kernel_store import kernel_store
sire = np.array([-1, -1, 0, 0, 2, 4], np.int32)
dam = np.array([-1, -1, 1, 1, 3, 3], np.int32)
with kernel_store().first_run():
    F = inbreeding(sire, dam)
    compiled = kernel_store().n_compiled
print(F.tolist(), compiled > 0)
"""


@pytest.mark.slow
def test_many_first_runs_at_once(tmp_path):
    """On an empty cache: all have the same result, one of them compiles, and nothing else is left."""
    (tmp_path / "temporary").mkdir()
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "temporary")}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")} | places
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    command = [sys.executable, "-c", FIRST]
    started = [subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) for _ in range(6)]
    outcomes = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0] * 6, outcomes
    expected = "[0.0, 0.0, 0.0, 0.0, 0.25, 0.375]"
    assert sorted(out for out, _ in outcomes) == [f"{expected} False\n"] * 5 + [f"{expected} True\n"]
    assert sorted(p.suffix for p in (tmp_path / "cache").iterdir()) == [".lock", ".zip"]
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.slow
def test_an_upgrade_of_a_function_reaches_the_kernels_that_call_it(tmp_path):
    """In another file: the logarithm is doubled."""
    shutil.copytree(ROOT / "mmgibbs", tmp_path / "mmgibbs", ignore=shutil.ignore_patterns("__pycache__"))
    before, _ = show(tmp_path, PYTHONPATH=str(tmp_path))
    path = tmp_path / "mmgibbs/draws/elementary.py"
    text, line = path.read_text(), "return e * LN2_HIGH - ((s * (f - y * p) - e * LN2_LOW) - f)"
    assert text.count(line) == 1
    path.write_text(text.replace(line, f"return 2.0 * ({line.removeprefix('return ')})"))
    after, hits = show(tmp_path, PYTHONPATH=str(tmp_path))
    assert after == 2 * before and hits == 0
