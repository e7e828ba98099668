"""What each statistic of a validation says, and what its sign means, for readers who want breeding values."""

from __future__ import annotations

from collections.abc import Collection

NAMES = {
    "predictive_ability": "predictive ability",
    "ratio_of_accuracies": "ratio of accuracies, partial to whole",
    "reliability_ratio": "ratio of reliabilities, partial to whole",
    "error": "mean squared error",
    "auc": "area under the ROC curve",
    "brier": "Brier score",
    "log_score": "log score",
    "ranked_probability": "ranked probability score",
}  # of a page, where they are not those of the tables
MEANINGS = {
    "kfold": {
        "predictive_ability": "correlation of predictions with records, of normal traits corrected for fixed effects",
        "accuracy": "predictive ability divided by the root of the heritability, an estimate of the correlation of "
        "predictions with true breeding values",
        "auc": "share of the pairs of a record of the category and another record that the predictions put in the "
        "right order: 0.5 by chance, 1 at best",
        "concordance": "share of the pairs of different records that the predictions put in the right order: 0.5 by "
        "chance, 1 at best",
        "brier": "mean squared difference of what was observed (1 or 0) and its probability; where all of more than "
        "two categories have one score, the sum over them; smaller is better",
        "ranked_probability": "as a Brier score, but a prediction that misses by several categories costs more; "
        "smaller is better",
        "log_score": "minus the mean logarithm of the probability of what was observed; smaller is better",
        "error": "mean squared difference of a record and its prediction; smaller is better",
        "dispersion": "regression of records on predictions. Below 1, predictions differ too much: high ones are too "
        "high, and low ones too low. Above 1, they differ too little",
        "bias": "mean prediction minus mean record. Above 0, predictions are too high on average; below 0, too low",
    },
    "lr": {
        "bias": "mean breeding value from partial data minus that from whole data. Above 0, these animals were "
        "predicted too high, and lose once the records that were left out come in; below 0, they were predicted too "
        "low",
        "dispersion": "regression of breeding values from whole data on those from partial data. Below 1, predictions "
        "differ too much: the best animals are predicted too high, and the poorest too low. Above 1, they differ too "
        "little",
        "ratio_of_accuracies": "correlation of the two breeding values, an estimate of the accuracy from partial data "
        "as a share of that from whole data: 1 if the records that were left out add nothing",
        "reliability_ratio": "estimate of the reliability from partial data as a share of that from whole data",
        "accuracy": "estimate of the correlation of breeding values from partial data with true breeding values",
    },
}


def explained(method: str, statistics: Collection[str]) -> list[tuple[str, str]]:
    """(name on the page, what it says) of these statistics of a method."""
    return [(NAMES.get(s, s), text) for s, text in MEANINGS[method].items() if s in statistics]
