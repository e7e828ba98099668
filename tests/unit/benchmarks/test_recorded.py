"""Recorded draws of small cases, with which `benchmarks/on_a_gpu.py` compares a device: those of the kernels now."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.host_device import CompilingDevice
from helpers.selection import first
from helpers.support import ROOT

from benchmarks.recorded import CASES, FILE, compare, compare_device, make_host_device, read_recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("recorded")


@pytest.mark.parametrize("name", first(8, CASES))
def test_draws_are_those_recorded(name, folder):
    """After a change that is meant to alter draws: python -m benchmarks.recorded --write."""
    case = CASES[name]
    assert compare(name, case.draw(make_host_device(case, folder))).startswith(f"{name}: as recorded")


class MutantDevice(CompilingDevice):
    """A device whose kernels have one line changed."""

    def __init__(self, folder, line, mutant):
        super().__init__(folder)
        self.line, self.mutant, self.is_changed = line, mutant, False

    def instances(self, source, names, cooperative=False):
        self.is_changed = self.is_changed or self.line in source
        return super().instances(source.replace(self.line, self.mutant), names, cooperative)


MUTANTS = {  # name -> a line of its kernels, and another, wrong by a little more than its tolerance
    "lasso": ("0.5 * misfit", "0.50001 * misfit"),
    "horseshoe probit": ("z[i] : z[i] * z[i];", "z[i] : 1.0001 * z[i] * z[i];"),
    "multinomial logit, Polya-Gamma": ("omega[i] * offset;", "1.0001 * omega[i] * offset;"),
    "multinomial logit, HMC": ("step / 2) * s.tried_gradient[at];", "step / 1.9999) * s.tried_gradient[at];"),
    "hierarchical, slice": ("return weights[i] * beta", "return (1.0 + 2.3e-16) * weights[i] * beta"),
    "mixed model, variances sampled": ("row[c] -= 0.5 * own * parent[c];", "row[c] -= 0.50001 * own * parent[c];"),
    "mixed model, a binary trait": ("mean += of.B[(size_t)p", "mean += 1.00001 * of.B[(size_t)p"),
    "SNP effects, the first sweep": ("r[l] -= (double)G", "r[l] -= (1.0 + 1e-14) * (double)G"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_line_that_is_wrong_is_noticed(name, folder):
    device = MutantDevice(folder, *MUTANTS[name])
    draws = CASES[name].draw(device)
    assert device.is_changed
    with pytest.raises(AssertionError, match="Mismatched elements"):
        compare(name, draws)


@pytest.mark.parametrize("name", CASES)
def test_another_value_is_noticed(name):
    """Of every array, in one element: the next number where bits are compared, else one beyond the tolerance."""
    recorded, tolerance = read_recorded(name), CASES[name].tolerance
    for array, values in recorded.items():
        changed = np.array(values, np.float64)
        place = np.unravel_index(np.where(np.isfinite(changed), np.abs(changed), -1.0).argmax(), changed.shape)
        changed[place] = changed[place] * (1 + 3 * tolerance) if tolerance else np.nextafter(changed[place], np.inf)
        if changed[place] == 0.0:
            changed[place] = 1e-300
        with pytest.raises(AssertionError, match="array|Mismatch|equal"):
            compare(name, recorded | {array: changed})
    with pytest.raises(AssertionError, match="arrays"):
        compare(name, dict(list(recorded.items())[1:]))


def test_what_a_device_says(monkeypatch, capsys, folder):
    """Whether bits are equal where only a tolerance is asked for; which array differs."""
    lasso, hierarchical = "lasso", "hierarchical, slice"
    draws = {name: read_recorded(name) for name in (lasso, hierarchical)}
    cases = {name: CASES[name]._replace(draw=lambda device, name=name: draws[name]) for name in draws}
    monkeypatch.setattr("benchmarks.recorded.CASES", cases)
    assert compare_device(None) == 0
    assert capsys.readouterr().out.splitlines() == [
        "lasso: as recorded, bit for bit",
        "hierarchical, slice: as recorded, bit for bit",
        "2 of 2 cases as recorded",
    ]
    draws[lasso]["beta"] = draws[lasso]["beta"] * (1 + 1e-12)
    draws[hierarchical]["beta"] = draws[hierarchical]["beta"] * (1 + 1e-12)
    assert compare_device(None) == 1
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert first == "lasso: as recorded up to 1.0e-12, tolerance 1e-09" and second == "DIFFERENT: "
    assert last == "1 of 2 cases as recorded"


def test_the_file_is_small_and_has_these_cases():
    assert FILE.stat().st_size < 150_000
    with np.load(FILE) as file:
        assert {key.partition(": ")[0] for key in file.files} == set(CASES)


@pytest.mark.slow
def test_nothing_of_the_input_is_needed():
    """As on a machine with a GPU, which has neither Polars nor pydantic."""
    code = "import sys\nsys.modules.update(dict.fromkeys(('polars', 'pydantic', 'matplotlib', 'jinja2')))\n" + CODE
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * len(CASES)


CODE = """
from benchmarks.recorded import CASES, make_host_device
from helpers.host_device import HostDevice

class Reached(Exception):
    pass

class EmptyDevice(HostDevice):
    def instances(self, source, names, cooperative=False):
        raise Reached

for case in CASES.values():
    if case.is_of_arrays:
        print(len(case.draw(make_host_device(case, None))) > 0)
        continue
    try:
        case.draw(EmptyDevice(()))
    except Reached:
        print(True)
"""
