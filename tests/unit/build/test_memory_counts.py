"""Bytes that are counted before a run starts, beside the growth of its process (helpers/memory_growth.py)."""

import sys
import types

import pytest
from helpers.memory_growth import analysis_of, grow
from helpers.selection import first

import mmgibbs
from mmgibbs.errors import DeviceError
from mmgibbs.likelihood import coefficients
from mmgibbs.machine import memory
from mmgibbs.population.contributions.coancestry import make_genomic_coancestry
from mmgibbs.runs.check_text import counts_as_text
from mmgibbs.runs.local import INTERPRETER

SIZES = [
    ("structured", 60_000), ("serial", 60_000), ("pcg", 60_000), ("hybrid", 60_000), ("repeated", 40_000),
    ("chains", 30_000), ("animals", 12_000), ("traits", 5_000), ("blup", 12_000), ("spectral", 2_000),
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
@pytest.mark.parametrize(("kind", "size"), first(1, SIZES))
def test_what_check_counts_is_within_a_third_of_the_growth(kind, size):
    counted, grown = grow(kind, size)
    assert abs(counted - grown) < grown / 3, (counted, grown)


@pytest.mark.parametrize("ask", [mmgibbs.check, lambda analysis: mmgibbs.run(analysis, progress=False)])
def test_lines_at_many_sites_are_refused_before_lists_are_made(ask, tmp_path, monkeypatch):
    """50 lines at six sites: 50^2 elements of K^-1, in 36 blocks of C, of which 15 mirror others."""
    analysis = analysis_of("sites", 50, tmp_path)
    analysis["variances"] = {"animal": {"structure": "full"}}  # factor-analytic ones take scores, and fewer bytes
    needed = 50**2 * (40 + 21 * 18 + 36 * 29)  # 3.7 MB
    monkeypatch.setattr(memory, "free_bytes", lambda: needed - 1)
    monkeypatch.setattr(coefficients, "explicit_equations", lambda *_: pytest.fail("lists were made"))
    with pytest.raises(DeviceError, match=r"the pattern of a factor of 306 equations needs about 3.7 MB, found 3.7 MB"):
        ask(analysis)
    assert not (tmp_path / "run50" / "run.json").exists()


def test_check_says_what_the_run_needs(tmp_path):
    """The factor that REML says, and the tables; chains in two processes take two interpreters."""
    analysis = analysis_of("animals", 60, tmp_path)
    counts = mmgibbs.check(analysis)
    needed = mmgibbs.run(analysis, progress=False).info["factor_bytes"]
    assert counts["memory"]["main"] > needed > 0 == counts["memory"]["workers"]
    assert f"memory: about {counts['memory']['main'] / 1e6:,.1f} MB beside libraries" in counts_as_text(counts)
    two = mmgibbs.check(analysis_of("chains", 61, tmp_path))
    assert two["memory"]["workers"] == 0 or two["memory"]["workers"] > 2 * INTERPRETER
    assert ("in processes of chains" in counts_as_text(two)) == (two["memory"]["workers"] > 0)


def test_coancestry_by_genotypes_counts_three_matrices(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 3 * 8 * 1000**2 - 1)
    store = types.SimpleNamespace(n_animals=1000, n_snps=0)
    with pytest.raises(DeviceError, match=r"coancestry of 1,000 candidates by genotypes needs about 24.0 MB"):
        make_genomic_coancestry(store)
