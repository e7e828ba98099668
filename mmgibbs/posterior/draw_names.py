"""What draws are called, in memory and in a checkpoint: G.0, rho.1, markers.snps.a, threshold.2, ..."""

from __future__ import annotations

MEAN_VARIANCE = "mean_variance"  # of the prior of SNP effects as it is: for reliabilities
RESIDUAL = "R"  # what the draws of the residual covariance matrices are called: (..., T, T), or (..., classes, T, T)


def matrix_name(term: int) -> str:
    """What the draws (..., k, k) of the covariance matrix of a random term are called."""
    return f"G.{term}"


def structure_name(term: int) -> str:
    """What the draws (..., p) of the parameters of the structure of a random term are called."""
    return f"structure.{term}"


def relationship_name(term: int) -> str:
    """What the draws (..., P) of the parameters of the relationship of a random term are called."""
    return f"rho.{term}"


def residual_correlation_name(group: int) -> str:
    """What the values (..., P) of the correlations of residuals of a group of records are called."""
    return f"rho.residual.{group}"


def marker_name(term: str, what: str) -> str:
    """What a quantity of a term of SNP effects is called among the draws, and in a checkpoint."""
    return f"markers.{term}.{what}"


def class_matrix_name(residual_class: int) -> str:
    """What the residual covariance matrix (k, k) of one class is called, where one name represents one matrix."""
    return f"{RESIDUAL}.{residual_class}"


def threshold_name(trait: int) -> str:
    """What the draws (..., K - 2) of the free thresholds of an ordinal trait are called."""
    return f"threshold.{trait}"


def observed_name(trait: int, residual_class: int = 0) -> str:
    """What the draws (..., m) of incidences and heritabilities on the observed scale are called."""
    return f"observed.{trait}.{residual_class}"


def liability_name(trait: int, residual_class: int = 0) -> str:
    """What the draws of the moments of a liability are called (observed_scale.OF_LIABILITY)."""
    return f"liability.{trait}.{residual_class}"


def trait_moments_name(trait: int) -> str:
    """What the draws of the mean of a trait and the variance of its fixed effects are called (trait_moments.py)."""
    return f"moments.{trait}"


def predicted_name(trait: int) -> str:
    """What the draws of records drawn anew are called (predictive.py)."""
    return f"predicted.{trait}"
