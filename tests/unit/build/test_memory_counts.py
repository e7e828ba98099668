"""Bytes that are counted before a run starts, beside the growth of its process (helpers/memory_growth.py)."""

import sys
import types

import pytest
from helpers.memory_growth import analysis_of, grow
from helpers.selection import first

import mmgibbs
from mmgibbs.contributions.coancestry import make_genomic_coancestry
from mmgibbs.errors import DeviceError
from mmgibbs.likelihood import coefficients
from mmgibbs.machine import memory

SIZES = [
    ("sites", 350), ("animals", 12_000), ("traits", 7_000), ("blup", 12_000), ("spectral", 2_500),
    ("genomic blup", 1_800), ("genomic gibbs", 2_500),
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
@pytest.mark.parametrize(("kind", "size"), first(1, SIZES))
def test_what_is_counted_is_within_a_third_of_the_growth(kind, size):
    counted, grown = grow(kind, size)
    assert abs(counted - grown) < grown / 3, (counted, grown)


@pytest.mark.parametrize("ask", [mmgibbs.check, lambda analysis: mmgibbs.run(analysis, progress=False)])
def test_lines_at_many_sites_are_refused_before_lists_are_made(ask, tmp_path, monkeypatch):
    """50 lines at six sites: 50^2 elements of K^-1, in 36 blocks of C, of which 15 mirror others."""
    analysis = analysis_of("sites", 50, tmp_path)
    needed = 50**2 * (40 + 21 * 18 + 36 * 29)  # 3.7 MB
    monkeypatch.setattr(memory, "free_bytes", lambda: needed - 1)
    monkeypatch.setattr(coefficients, "explicit_equations", lambda *_: pytest.fail("lists were made"))
    with pytest.raises(DeviceError, match=r"the pattern of a factor of 306 equations needs about 3.7 MB, found 3.7 MB"):
        ask(analysis)
    assert not (tmp_path / "run50" / "run.json").exists()


def test_the_run_says_what_its_factor_needs(tmp_path, capsys):
    result = mmgibbs.run(analysis_of("sites", 20, tmp_path), progress=True)
    needed = result.info["factor_bytes"]
    assert f"REML: 126 equations, {needed / 1e6:,.1f} MB" in "".join(capsys.readouterr())


def test_coancestry_by_genotypes_counts_three_matrices(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 3 * 8 * 1000**2 - 1)
    store = types.SimpleNamespace(n_animals=1000, n_snps=0)
    with pytest.raises(DeviceError, match=r"coancestry of 1,000 candidates by genotypes needs about 24.0 MB"):
        make_genomic_coancestry(store)
