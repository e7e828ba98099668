"""Probabilities, ranks and gains from stored draws: what the streamed ones must equal."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
from scipy.stats import beta, rankdata


def from_draws(scores: np.ndarray, selected, rank_interval: str, batch_length: int) -> dict[str, np.ndarray]:
    """scores: (chains, draws, m) of one criterion; selected: how many, for each top; rank_interval: such as '0.9'."""
    chains, draws, m = scores.shape
    N, c = chains * draws, Fraction(rank_interval)
    ranks = rankdata(-scores, method="ordinal", axis=-1)  # (chains, draws, m), 1 for the highest
    ordered = np.sort(ranks.reshape(N, m), axis=0)
    low, median, high = (ordered[ceil(N * q) - 1] for q in ((1 - c) / 2, Fraction(1, 2), (1 + c) / 2))
    out = {"mean": scores.mean(axis=(0, 1)), "sd": scores.reshape(N, m).std(axis=0, ddof=1)}
    out |= {"rank_low": low, "rank_median": median, "rank_high": high}
    for n in selected:
        best = ranks <= n
        gains = np.array([s[b].mean() - s.mean() for s, b in zip(scores.reshape(N, m), best.reshape(N, m))])
        p = best.mean(axis=(0, 1))
        complete = draws // batch_length
        batches = best[:, : complete * batch_length].reshape(chains * complete, batch_length, m).mean(axis=1)
        by_mean = np.argsort(-out["mean"], kind="stable")[:n]
        by_p = sorted(range(m), key=lambda i: (-p[i], -out["mean"][i]))[:n]
        out[n] = {
            "p": p,
            "mcse": [
                max(error, unseen) if share in (0, 1) else error
                for share, error, unseen in zip(
                    p, batches.std(axis=0, ddof=1) * np.sqrt(batch_length / N), _sd_of_unseen(scores, batch_length)
                )
            ],
            "by_mean": out["mean"][by_mean].mean() - out["mean"].mean(),
            "by_p": out["mean"][by_p].mean() - out["mean"].mean(),
            "perfect": gains.mean(),
            "perfect_sd": gains.std(ddof=1),
        }
    return out


def _sd_of_unseen(scores: np.ndarray, batch_length: int) -> list[float]:
    """Of each candidate, the SD of the posterior Beta(1/2, ess + 1/2) of a probability after no event."""
    chains, draws, m = scores.shape
    N, complete = chains * draws, draws // batch_length
    means = scores[:, : complete * batch_length].reshape(chains * complete, batch_length, m).mean(axis=1)
    mcse = means.std(axis=0, ddof=1) * np.sqrt(batch_length / N)
    ess = np.clip((scores.reshape(N, m).std(axis=0, ddof=1) / mcse) ** 2, 1, N)
    return [float(beta(0.5, n + 0.5).std()) for n in ess]
