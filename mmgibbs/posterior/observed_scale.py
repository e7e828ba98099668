"""Traits that are not normal on the scale of their records: incidences and heritabilities, draw by draw.

Record i has the liability l_i = eta_i + what is random, of variance V_i: eta_i is the fixed part, V_i the sum of all
random variances (with cross terms, as in h2) and of the residual variance, 1 by convention for categories. With s2 the
variance of the direct effect, and means over the records,

    categories   p_k   = mean Phi((t_k - eta_i) / sqrt V_i) - Phi((t_{k-1} - eta_i) / sqrt V_i)
                 psi_k = mean [phi((t_{k-1} - eta_i) / sqrt V_i) - phi((t_k - eta_i) / sqrt V_i)] / sqrt V_i
                 h2_k  = psi_k^2 s2 / (p_k (1 - p_k))
    scores s_k   h2    = (sum s_k psi_k)^2 s2 / (sum s_k^2 p_k - (sum s_k p_k)^2)
    counts       m     = mean exp(eta_i + V_i / 2),   eta_i with the log of the exposure
                 h2    = m^2 s2 / (mean exp(2 eta_i + 2 V_i) - m^2 + m)

psi is the slope of the expected record on the breeding value (Dempster & Lerner 1950 for one eta; de Villemereuil,
Schielzeth, Nakagawa & Morrissey 2016 in general). V_i is that of the very record where the model makes records differ:
covariates of random regressions, effects that a record does not meet, residual classes.

SNP effects have no variance of a population: of them V_i and s2 have the realised variance of the genomic values g over
the genotyped records of this population, draw by draw, and eta_i their mean there. (h2 has it over all genotyped
animals.) A record whose animal is not genotyped has no SNP effects, as the model has it. Where its genotypes are
predicted (single_step) it has, and the random effect holds what they leave: of that V_i has d_i s2, d_i the diagonal of
(A^nn)^-1, 0 for genotyped animals; the variance of the direct effect is that of g plus the mean of d_i s2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from mmgibbs.models.families import Response

MOST = 10_000  # records that averages are taken over
# What is kept of the liability in every draw: mean and variance of eta over the records (without exposure, on the
# user's scale), mean of V, and mean of V where the own effect of an animal is given.
OF_LIABILITY = ("mean", "variance of the fixed part", "variance given fixed effects", "variance given the own effect")
OF_GENOMIC = ("mean without genomic values of the animals' own",)  # beside them where SNPs have effects


@dataclass(frozen=True)
class FixedContribution:
    """Contribution of a fixed effect to the rows of a population: sum_j values[:, j] theta[level, components[j]]."""

    term: int
    components: np.ndarray  # (m,) int64
    level: np.ndarray  # (rows,) int64
    values: np.ndarray  # (rows, m) float64; 0 where the record does not meet the effect


@dataclass(frozen=True)
class GenomicContribution:
    """SNP effects on the records of a population."""

    markers: tuple[int, ...]  # numbers of the terms
    places: np.ndarray  # (terms, records) int64 in their stores of the animals of the genotyped records; -1: not in it
    genotyped: np.ndarray  # (rows,) 1 where records have SNP effects, else 0

    def moments(self, values: Sequence[np.ndarray], chosen: Sequence[int] | None = None) -> tuple[float, float]:
        """Mean and variance over the records of the sum of the chosen terms (None: all); values: of every term of the
        model, (animals of its store,).
        """
        g = np.zeros(self.places.shape[1])
        for j, place in zip(self.markers, self.places, strict=True):
            if chosen is None or j in chosen:
                g += np.where(place >= 0, values[j][place], 0.0)
        return (float(g.mean()), float(g.var())) if g.size else (0.0, 0.0)


@dataclass(frozen=True)
class Population:
    """Records of a trait, equal ones joined: their fixed parts and their variances.

    V_i = sum over random terms of sum_ab products_ab G_ab  +  R_tt of the record's class
    """

    trait: int
    weight: np.ndarray  # (rows,) share of the records, sums to 1
    fixed: tuple[FixedContribution, ...]
    log_exposure: np.ndarray  # (rows,) of counts, on the scale of the sampler; else 0
    origin: float  # what the sampler took off the liabilities: the user's eta is eta + origin
    profile: np.ndarray  # (rows,) int64 row of `products`
    products: tuple[tuple[str, np.ndarray], ...]  # name of a covariance matrix, (profiles, k, k)
    residual_class: np.ndarray  # (profiles,) int64
    genomic: GenomicContribution | None = None

    def fixed_predictor(self, theta: Sequence[np.ndarray]) -> np.ndarray:
        """Compute eta (rows,) as the sampler has it, without exposure; theta: (q, k) per term."""
        eta = np.zeros(len(self.weight))
        for contribution in self.fixed:
            effects = theta[contribution.term][contribution.level][:, contribution.components]
            eta += _sum_products("nm,nm->n", effects, contribution.values)
        return eta

    def variance(self, matrices: dict[str, np.ndarray], residual: np.ndarray) -> np.ndarray:
        """Compute V (rows,); residual (classes,): R_tt."""
        V = residual[self.residual_class].astype(float)
        for name, products in self.products:
            V = V + _sum_products("pab,ab->p", products, matrices[name])
        return V[self.profile]

    def without(self, matrix: str, component: int) -> Population:
        """Set the products of one component to 0, which is then given, and drawn for nobody."""
        products = []
        for name, of_profiles in self.products:
            kept = of_profiles.copy()
            if name == matrix:
                kept[:, component, :] = kept[:, :, component] = 0.0
            products.append((name, kept))
        return replace(self, products=tuple(products))


@dataclass(frozen=True)
class ObservedScale:
    """Quantities that are reported of one trait, or of one of its residual classes."""

    draws: str  # what the draws (m,) are called
    liability: str  # what the draws of OF_LIABILITY are called
    names: tuple[str, ...]  # (m,) of the parameters
    population: Population
    family: type[Response]
    categories: int  # K; 0 for counts
    scores: tuple[float, ...] = ()  # (K,) of numbered categories, where there are more than two
    direct: tuple[str, int] | None = None  # matrix and component of the direct effect; None: no heritability
    own: tuple[str, int] | None = None  # of the effect by which animals are told apart: the direct one, or a sire's
    own_markers: tuple[int, ...] = ()  # terms of SNP effects of these very animals
    genomic_heritability: bool = False  # SNP effects count in it
    # a fixed regression that is a part of their breeding values (J, where genotypes are predicted): term, component,
    # and what the mean of the records takes of its slope on the user's scale
    own_regression: tuple[int, int, float] | None = None
    direct_diagonal: float = 1.0  # mean over the records of the variance of the direct effect in units of its own

    @property
    def heritable(self) -> bool:
        return self.direct is not None or self.genomic_heritability


def _sum_products(subscripts: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """np.einsum over all dimensions but the first; of one product each without the call, which takes longer."""
    if first.size == len(first):
        return first.reshape(-1) * second.reshape(-1)
    return np.einsum(subscripts, first, second)


def category_moments(
    eta: np.ndarray, V: np.ndarray, cuts: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute p and psi (K,); eta, V and weight (rows,), cuts (K + 1,) from -inf to inf."""
    sd = np.sqrt(V)
    z = (cuts[1:-1, None] - eta) / sd
    edge = np.zeros(1)
    below = np.concatenate([edge, scipy.special.ndtr(z) @ weight, edge + 1])
    density = np.concatenate([edge, (np.exp(-0.5 * z * z) / sd) @ weight / np.sqrt(2 * np.pi), edge])
    return below[1:] - below[:-1], density[:-1] - density[1:]


def heritability_of_categories(p: np.ndarray, psi: np.ndarray, direct: float) -> np.ndarray:
    """Compute the heritability of the indicator of each category, (K,)."""
    return psi**2 * direct / (p * (1 - p))


def heritability_of_scores(p: np.ndarray, psi: np.ndarray, scores: np.ndarray, direct: float) -> float:
    """Return the heritability of the score itself."""
    return float((scores @ psi) ** 2 * direct / (scores**2 @ p - (scores @ p) ** 2))


def observed_values(
    scale: ObservedScale, eta: np.ndarray, V: np.ndarray, cuts: np.ndarray, direct: float
) -> np.ndarray:
    """Compute the values of `scale.names` in one draw, (m,). Of two categories the higher one is reported."""
    weight = scale.population.weight
    if not scale.categories:
        slope, variance = scale.family.find_moments(eta + scale.population.log_exposure, V, weight)
        return np.array([slope**2 * direct / variance] if scale.heritable else [])
    p, psi = category_moments(eta, V, cuts, weight)
    first = 1 if scale.categories == 2 else 0
    values = [p[first:]]
    if scale.heritable:
        values.append(heritability_of_categories(p, psi, direct)[first:])
        if scale.scores:
            values.append(np.array([heritability_of_scores(p, psi, np.array(scale.scores), direct)]))
    return np.concatenate(values)


def observed_names(trait: str, ending: str, labels: Sequence[str], heritable: bool, scored: bool) -> tuple[str, ...]:
    """The names of `observed_values`: incidence[trait:category], h2_observed[trait:category], h2_observed[trait].

    labels (K,): none for counts; of two categories the names have the trait alone.
    """
    suffixes = [""] if len(labels) == 2 else [f":{label}" for label in labels]
    names = [f"incidence[{trait}{of}{ending}]" for of in suffixes] if labels else []
    if heritable:
        names += [f"h2_observed[{trait}{of}{ending}]" for of in suffixes]
        names += [f"h2_observed[{trait}{ending}]"] if scored or not labels else []
    return tuple(names)
