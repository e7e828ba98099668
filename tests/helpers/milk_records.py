"""Records of milk and fat of sixty cows, and their analysis by REML."""

import json

import numpy as np
import polars as pl
from helpers.estimates import covariance_matrix

ANALYSIS = """\
name: milk
data: {phenotypes: records.csv}
traits: [milk, fat]
model:
  fixed: {herd: {}}
  random: {cow: {}}
sampler: {method: reml}
output: {directory: run}
"""


def records():
    rng = np.random.default_rng(3)
    cow = np.repeat(np.arange(60), 3)
    own = rng.standard_normal((60, 2)) @ np.linalg.cholesky([[2.0, 0.8], [0.8, 1.0]]).T
    y = 10 + own[cow] + rng.standard_normal((180, 2)) @ np.linalg.cholesky([[1.0, 0.3], [0.3, 1.5]]).T
    table = pl.DataFrame({"cow": [f"c{c}" for c in cow], "herd": cow % 4, "milk": y[:, 0], "fat": y[:, 1]})
    return table.with_columns(fat=pl.when(pl.int_range(180) % 5 == 0).then(None).otherwise("fat"))


def starts(result):
    matrix = lambda term: covariance_matrix(result, term, ["milk", "fat"]).tolist()
    return [f"variances.{term}={json.dumps(matrix(term))}" for term in ("cow", "residual")]


def no_variance():
    """Records whose means by cow are all 0: the variance of cows is 0."""
    y = pl.Series(np.random.default_rng(1).standard_normal(180))
    table = records().with_columns(milk=y, cow=pl.Series([f"c{i % 60}" for i in range(180)]))
    return table.with_columns(milk=pl.col("milk") - pl.col("milk").mean().over("cow"))
