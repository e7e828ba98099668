"""Estimates of a run by their names, and the covariance matrices that they make."""

import numpy as np


def estimates(result) -> dict[str, float]:
    return dict(result.summary.select("parameter", "mean").iter_rows())


def covariance_matrix(result, term: str, traits: list[str]) -> np.ndarray:
    """Means of the elements of the matrix of a term."""
    values = estimates(result)
    out = np.diag([values[f"{term}.var[{t}]"] for t in traits])
    for i, a in enumerate(traits):
        for j, b in enumerate(traits[i + 1 :], i + 1):
            out[i, j] = out[j, i] = values[f"{term}.cov[{a},{b}]"]
    return out


def assert_same_draws(one, other, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Of every parameter; without tolerances bit for bit."""
    for name, draws in one.draws["posterior"].data_vars.items():
        np.testing.assert_allclose(other.draws["posterior"][name], draws, rtol, atol, err_msg=name)
