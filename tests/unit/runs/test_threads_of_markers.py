"""Threads share the sweeps over SNP effects of one chain: the draws are those of one thread, bit for bit."""

import numpy as np
import polars as pl
import pytest

import mmgibbs
from mmgibbs.build.assemble import assemble
from mmgibbs.build.engine import choose_engine
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.sampler.markers import sweep

ANIMALS, SNPS = 300, 70  # three chunks of animals, two blocks of SNPs, the second of 6


def analysis(path, section, threads, traits):
    rng = np.random.default_rng(8)
    codes = rng.binomial(2, 0.4, (ANIMALS, SNPS))
    ids = [f"a{i}" for i in range(ANIMALS)]
    pl.DataFrame({"animal": ids} | {f"s{j}": codes[:, j] for j in range(SNPS)}).write_csv(path / "genotypes.csv")
    g = codes[:, :5] @ np.ones(5)
    records = {t: [None if i % 7 == k else g[i] + rng.standard_normal() for i in range(ANIMALS)]
               for k, t in enumerate(traits)}  # fmt: skip
    return {
        "data": {
            "phenotypes": pl.DataFrame({"animal": ids} | records),
            "genotypes": {"file": str(path / "genotypes.csv")},
        },
        "traits": list(traits),
        "model": {"markers": {"snps": section}},
        "sampler": {"chains": 1, "burn_in": 4, "samples": 8, "thin": 1, "seed": 2, "refresh_every": 5}
        | {"engine": "serial", "threads": threads},
        "output": {"directory": str(path / f"run{threads}"), "save_marker_draws": 8},
    }


@pytest.mark.parametrize(
    ("section", "traits"),
    [({"prior": "bayes_r"}, ("y",)), ({"prior": "bayes_c", "across_traits": "joint"}, ("y", "x"))],
)
def test_the_same_draws(tmp_path, monkeypatch, section, traits):
    monkeypatch.setattr(sweep, "SHARED", 1)
    used = []
    together = sweep.Threads.together
    monkeypatch.setattr(sweep.Threads, "together", lambda own, *rest: (used.append(own.count), together(own, *rest))[1])
    kept = []
    for threads in (1, 2, 5):  # more than there are chunks, too
        wanted = analysis(tmp_path, section, threads, traits)
        result = mmgibbs.run(wanted, overwrite=True, progress=False)
        assert result.info["threads"] == threads
        with np.load(result.directory / "marker_draws.npz") as file:
            kept.append([file[f"effects.{i}"] for i in range(len(traits))] + [result.solutions["mean"].to_numpy()])
    assert set(used) == {1, 2, 5}
    for other in kept[1:]:
        for one, two in zip(kept[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    assert kept[0][0].any()


@pytest.mark.parametrize(("threads", "shared"), [("auto", False), (2, True)])
def test_threads_share_where_they_are_asked_for(tmp_path, threads, shared):
    """Whoever asks for none may have other work on the cores, for which a sweep would wait at every block."""
    wanted = analysis(tmp_path, {"prior": "rr"}, threads, ("y",)) | {"output": {"directory": str(tmp_path / "run")}}
    config = load_config(wanted)
    chosen = choose_engine(config.sampler, assemble(config, prepare(config)).model)
    assert chosen.engine.share_effects == shared and chosen.engine.threads == (2 if shared else 1)


def test_few_animals_are_one_thread_s():
    two = sweep.Threads(2)
    assert sweep.sharing(two, sweep.SHARED) is two and sweep.sharing(two, sweep.SHARED - 1).count == 1
