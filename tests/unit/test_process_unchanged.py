"""Importing and using the library leaves the process as it was: nothing of other libraries is replaced or set."""

import json
import subprocess
import sys

import pytest
from helpers.support import ROOT

LOOK = """
import gc, json, os, signal, sys, warnings
import joblib, numba, numpy, polars, scipy.linalg, scipy.sparse, scipy.special, threadpoolctl  # filter warnings

def look():
    return {
        "environment": dict(os.environ),
        "settings of numba": {k: repr(v) for k, v in vars(numba.config).items() if k.isupper()},
        "threads of numba": numba.get_num_threads(),
        "finders": [repr(f) for f in sys.meta_path],
        "path hooks": len(sys.path_hooks),
        "warnings": [repr(f) for f in warnings.filters],
        "handlers": {s.name: repr(signal.getsignal(s)) for s in signal.Signals},
        "threads of BLAS": [(x["filepath"], x["num_threads"]) for x in threadpoolctl.threadpool_info()],
        "errors of NumPy": numpy.geterr(),
        "random state": repr(numpy.random.get_state()),
        "settings of Polars": polars.Config.state(),
        "garbage": [gc.isenabled(), gc.get_threshold()],
        "hooks": [repr(h) for h in (sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile())],
        "folder": os.getcwd(),
        "path": list(sys.path),
        "mask": os.umask(os.umask(0)),
    }

def replaced():
    found = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("mmgibbs", "pedigree", "__main__", "__mp_main__"):
            continue
        for key, value in list(getattr(module, "__dict__", {}).items()):
            members = vars(value).items() if isinstance(value, type) else ()
            for place, thing in ((key, value), *((f"{key}.{k}", v) for k, v in members)):
                home = getattr(thing, "__module__", None)
                named = getattr(module, "__name__", name) != home and callable(thing)
                if named and isinstance(home, str) and home.split(".")[0] == "mmgibbs":
                    found.append(f"{name}.{place}")
    return found

before = look()
DO
print(json.dumps({
    "changed": [k for k, v in look().items() if v != before[k]], "replaced": replaced(),
}))
"""
DOING = """
import importlib, pkgutil
import mmgibbs, pedigree
from mmgibbs.errors import MmgibbsError
from mmgibbs.pedigree.errors import PedigreeError

for package in (mmgibbs, pedigree):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

def run(*more):
    mmgibbs.run("configs/first.yaml", [*SHORT, *more], progress=False, directory=FOLDER + str(len(more)))

run()
X = numpy.random.default_rng(1).normal(size=(30, 3))
mmgibbs.BayesianLasso(chains=1, burn_in=2, samples=8, seed=1, progress=False).fit(X, X[:, 0])

def fail(*_):
    raise ZeroDivisionError

chain = importlib.import_module("mmgibbs.sampler.chain").Chain
advance, chain.advance = chain.advance, fail
for changed in ("data.phenotypes=absent.csv", "traits=[absent]", "sampler.no_such_key=1", "sampler.chains=1"):
    try:
        run(changed)
    except (MmgibbsError, PedigreeError, ZeroDivisionError) as error:
        assert isinstance(error, ZeroDivisionError) == (changed == "sampler.chains=1"), error
    else:
        raise AssertionError(changed)
chain.advance = advance
"""


def changes(doing: str, folder) -> dict:
    short = ["sampler.chains=2", "sampler.burn_in=2", "sampler.samples=12", "sampler.thin=2", "sampler.seed=1"]
    script = f"FOLDER, SHORT = {str(folder / 'run')!r}, {short!r}\n" + LOOK.replace("DO\n", doing, 1)
    command = [sys.executable, "-W", "ignore:.*few effective draws", "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_nothing_is_changed(tmp_path):
    """Not by importing every module, a run in processes, runs that fail early and late, or a fit."""
    assert changes(DOING, tmp_path) == {"changed": [], "replaced": []}


def test_changes_are_seen(tmp_path):
    doing = """
os.environ["X"], numba.config.CACHE_DIR = "1", "."
import mmgibbs.pedigree.errors
numba.njit = mmgibbs.pedigree.errors.PedigreeError
"""
    seen = changes(doing, tmp_path)
    assert seen == {"changed": ["environment", "settings of numba"], "replaced": ["numba.njit"]}
