"""What draws are called, in memory and in a checkpoint: G.0, rho.1, markers.snps.a, threshold.2, ..."""

from __future__ import annotations

MEAN_VARIANCE = "mean_variance"  # of the prior of SNP effects as it is: for reliabilities
RESIDUAL = "R"  # what the draws of the residual covariance matrices are called: (..., T, T), or (..., classes, T, T)


def matrix_name(term: int) -> str:
    """Name the draws (..., k, k) of the covariance matrix of a random term."""
    return f"G.{term}"


def structure_name(term: int) -> str:
    """Name the draws (..., p) of the parameters of the structure of a random term."""
    return f"structure.{term}"


def relationship_name(term: int) -> str:
    """Name the draws (..., P) of the parameters of the relationship of a random term."""
    return f"rho.{term}"


def residual_correlation_name(group: int) -> str:
    """Name the values (..., P) of the correlations of residuals of a group of records."""
    return f"rho.residual.{group}"


def marker_name(term: str, what: str) -> str:
    """Name a quantity of a term of SNP effects among the draws, and in a checkpoint."""
    return f"markers.{term}.{what}"


def class_matrix_name(residual_class: int) -> str:
    """Name the residual covariance matrix (k, k) of one class, where one name represents one matrix."""
    return f"{RESIDUAL}.{residual_class}"


def threshold_name(trait: int) -> str:
    """Name the draws (..., K - 2) of the free thresholds of an ordinal trait."""
    return f"threshold.{trait}"


def observed_name(trait: int, residual_class: int = 0) -> str:
    """Name the draws (..., m) of incidences and heritabilities on the observed scale."""
    return f"observed.{trait}.{residual_class}"


def liability_name(trait: int, residual_class: int = 0) -> str:
    """Name the draws of the moments of a liability (observed_scale.OF_LIABILITY)."""
    return f"liability.{trait}.{residual_class}"


def trait_moments_name(trait: int) -> str:
    """Name the draws of the mean of a trait and the variance of its fixed effects (trait_moments.py)."""
    return f"moments.{trait}"


def predicted_name(trait: int) -> str:
    """Name the draws of records drawn anew (predictive.py)."""
    return f"predicted.{trait}"
