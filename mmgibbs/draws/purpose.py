"""What a draw is for: the third counter word. No two kinds of draw of a run share a counter, because they differ here.

    word 0  sweep
    word 1  level or record, numbered in model order (a partition of the equations never changes it)
    word 2  purpose (top 8 bits) and term (low 24 bits)            <- stream()
    word 3  draw (top 8 bits) and attempt (low 24 bits)

and the key is (seed, chain). Within one (sweep, level, purpose, term) each draw index 0..255 belongs to one draw, or to
one *pair* of normals; the attempts of a rejection sampler run in the low bits, so they never meet those of its
neighbour.
"""

from __future__ import annotations

from typing import NamedTuple

LOCATION = 1  # levels of the mixed model: fixed and random effects
AUGMENT = 2  # residuals of the traits that a record lacks
LIABILITY = 3  # liabilities of traits in categories, censored traits and counts
VARIANCE = 4  # inverse-Wishart and scaled inverse chi-square draws
INTERWEAVE = 5  # the redraw of a variance given standardised effects
PERTURB = 6  # exact draws by perturb-and-solve
THRESHOLD = 7  # thresholds of ordinal traits
LIABILITY_SCALE = 8  # the common scale of liabilities, their effects and thresholds
AUXILIARY = 9  # auxiliary variables of priors of covariance matrices
RESIDUAL_SCALE = 10  # residual standard deviations of a trait in categories, by class of records
MARKER = 11  # effects of SNPs
MARKER_CLASS = 12  # their classes
MARKER_LOCAL = 13  # variances of single SNPs
MARKER_SHARES = 14  # shares of the classes, and what is common to all SNPs
PREDICTED = 15  # records drawn anew, of traits that are not normal (generator.py)
# Regression plugins own 16..255: one purpose per step of their sampler.
REGRESSION_COEFFICIENT = 16  # beta
REGRESSION_LATENT = 17  # latent responses z, omega
REGRESSION_LOCAL_SCALE = 18  # lambda_j, tau_j
REGRESSION_LOCAL_AUXILIARY = 19  # nu_j
REGRESSION_GLOBAL_SCALE = 20  # tau, lambda
REGRESSION_GLOBAL_AUXILIARY = 21  # xi
REGRESSION_RESIDUAL = 22  # sigma^2
REGRESSION_MOMENTUM = 23  # HMC momenta
REGRESSION_ACCEPT = 24  # Metropolis decisions, trajectory lengths
REGRESSION_SLICE = 25  # slice heights, brackets and candidates
REGRESSION_HYPER = 26  # group means and covariances
REGRESSION_RESCALE = 27  # parameter expansion
REGRESSION_START = 28  # starting values
MARGINAL = 29  # variances of the mixed model with the location effects integrated out
PREDICTION_ERROR = 30  # prediction errors at known variances
STRUCTURE = 31  # parameters of structured covariance matrices (generator.py)
CORRELATION = 32  # parameters of relationships, such as correlations of neighbouring plots
SIMULATED_RECORD = 33  # records simulated from the model, for REML by Monte Carlo
MARKER_SHARE_STEP = 40  # Metropolis steps of the shares of classes of SNPs
MARKER_SWAP = 41  # exchanges of effects between SNPs that are alike

MAX_TERM = (1 << 24) - 1


class Site(NamedTuple):
    """Counter and key of a kernel's draws without the level and the number of the draw."""

    number: int  # of the sweep
    stream: int  # of `stream`
    seed: int
    chain: int


def stream(purpose: int, term: int) -> int:
    """The third counter word, purpose * 2^24 + term. ValueError unless 1 <= purpose <= 255 and 0 <= term < 2^24."""
    if not 1 <= purpose <= 255:
        raise ValueError(f"purpose of a draw: found {purpose}, needed 1 to 255")
    if not 0 <= term <= MAX_TERM:
        raise ValueError(f"term of a draw: found {term}, needed 0 to {MAX_TERM}")
    return (int(purpose) << 24) | int(term)
