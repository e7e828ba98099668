"""How good probabilities are: scores of predictions of records that were left out, and what is expected of them.

With y_k = 1 for the category of a record, p_k its predicted probabilities, Y and P their sums from below:

    Brier score            sum_k (p_k - y_k)^2; of two categories (p - y)^2           expected: sum_k p_k (1 - p_k)
    log score              -log p of what was observed                                 expected: -sum_k p_k log p_k
    ranked probability     sum_k (P_k - Y_k)^2 (Epstein 1969)                          expected: sum_k P_k (1 - P_k)
    concordance            share of the pairs of different records that the prediction orders rightly, equal ones by
                           half: of a binary trait the area under the ROC curve; of censored records Harrell's C, over
                           the pairs whose intervals do not overlap
    dispersion             cov(y, p) / var(p)                                          expected: 1
    bias                   mean(p) - mean(y)                                           expected: 0

The expectations hold where the probabilities are those of the model that made the records.
"""

from __future__ import annotations

import numpy as np

Statistics = dict[str, tuple[float, float | None]]  # name -> (estimate, expected)
MOST = 3000  # records of a fold whose pairs are compared; of more, so many spread evenly


def brier(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K), category (n,). Of two categories that of one of them."""
    y = np.eye(p.shape[1])[category]
    share = 0.5 if p.shape[1] == 2 else 1.0
    return share * float(((p - y) ** 2).sum(1).mean()), share * float((p * (1 - p)).sum(1).mean())


def log_score(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(p > 0, -p * np.log(p), 0.0).sum(1)
        return float(-np.log(p[np.arange(len(p)), category]).mean()), float(entropy.mean())


def ranked_probability(p: np.ndarray, category: np.ndarray) -> tuple[float, float]:
    """(score, expected); p (n, K)."""
    P = np.cumsum(p, axis=1)[:, :-1]
    Y = category[:, None] <= np.arange(P.shape[1])
    return float(((P - Y) ** 2).sum(1).mean()), float((P * (1 - P)).sum(1).mean())


def concordance(predicted: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of the pairs with upper_i < lower_j whose predictions are ordered so; NaN without such pairs.

    A record that is known has lower = upper.
    """
    if len(predicted) > MOST:
        chosen = np.linspace(0, len(predicted) - 1, MOST).astype(int)
        predicted, lower, upper = predicted[chosen], lower[chosen], upper[chosen]
    ordered = upper[:, None] < lower[None, :]
    right = predicted[:, None] < predicted[None, :]
    equal = predicted[:, None] == predicted[None, :]
    pairs = int(ordered.sum())
    return float((ordered & right).sum() + 0.5 * (ordered & equal).sum()) / pairs if pairs else np.nan


def dispersion(predicted: np.ndarray, observed: np.ndarray) -> float:
    """Regression of what was observed on its prediction; NaN where the prediction does not vary."""
    if len(predicted) < 2:
        return np.nan
    (_, cov), (_, variance) = np.cov(observed, predicted)
    return float(cov / variance) if variance > 0 else np.nan


def of_categories(p: np.ndarray, category: np.ndarray) -> Statistics:
    """Statistic -> (estimate, expected), of one fold."""
    numbers = np.arange(p.shape[1])
    mean, y = p @ numbers, category.astype(float)
    ordinal = {"ranked_probability": ranked_probability(p, category)} if p.shape[1] > 2 else {}
    return {
        "concordance" if ordinal else "auc": (concordance(mean, y, y), None),
        "brier": brier(p, category),
        **ordinal,
        "log_score": log_score(p, category),
        "dispersion": (dispersion(mean, y), 1.0),
        "bias": (float(mean.mean() - y.mean()), 0.0),
    }


def of_counts(probability: np.ndarray, expected: np.ndarray, count: np.ndarray) -> Statistics:
    """The same of counts: probability (n,) of what was observed, expected (n,) counts."""
    correlation = float(np.corrcoef(expected, count)[0, 1]) if expected.std() > 0 and count.std() > 0 else np.nan
    with np.errstate(divide="ignore"):
        surprise = float(-np.log(probability).mean())
    return {
        "predictive_ability": (correlation, None),
        "log_score": (surprise, None),
        "dispersion": (dispersion(expected, count), 1.0),
        "bias": (float(expected.mean() - count.mean()), 0.0),
    }


def of_intervals(mean: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Statistics:
    """The same of censored records: mean (n,) predicted liabilities."""
    return {"concordance": (concordance(mean, lower, upper), None)}
