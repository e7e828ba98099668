"""Whether one structure of a covariance matrix is nested in another, and by how many parameters.

Every structure is nested in `full`, and `diagonal` in all those with free variances but that of reduced rank, which is
factor-analytic without specific variances. One correlation rho > 0 is one common factor: D C(rho) D = rho d d' + (1 -
rho) D^2. AR1 is ante-dependence with regressions rho d_j / d_(j-1).

Where the smaller model is the larger one without some of its common factors, the matrix L L' of those is on its
boundary, and nothing determines their directions: D is not chi-square with the parameters that the smaller model lacks.
The full matrix contains both models, so that D is at most the statistic of the smaller one within the full matrix,
which is chi-square: its p value is an upper bound. A matrix of reduced rank is on the boundary of the larger ones,
where D has a mixture of chi-squares: that with most degrees of freedom gives an upper bound too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

WITH_FACTORS = ("factor_analytic", "reduced_rank")


class Kind(NamedTuple):
    """A structure for k components, those that are the same model under one name."""

    name: str
    k: int
    factors: int = 0
    equal: bool = False
    distances: str = "equal"  # of AR1

    @property
    def n_parameters(self) -> int:
        """Parameters that the matrix determines, at most its k (k + 1) / 2 elements."""
        n_variances = 1 if self.equal else self.k
        n_full = self.k * (self.k + 1) // 2
        match self.name:
            case "full":
                return n_full
            case "diagonal":
                return n_variances
            case "factor_analytic":
                return min(_count_loadings(self.k, self.factors) + n_variances, n_full)
            case "reduced_rank":
                return _count_loadings(self.k, self.factors)
            case "antedependence":
                return n_variances + self.k - 1
            case _:
                return n_variances + 1


@dataclass(frozen=True)
class Restriction:
    """What the structure of the smaller model fixes: so many parameters of the larger one.

    most: degrees of freedom of a chi-square that gives an upper bound of p where common factors are lacking; elsewhere
    D is chi-square with `parameters` itself.
    """

    words: str
    parameters: int
    most: int
    lacks_factors: bool


def make_kind(section: Any, k: int) -> Kind:
    """Make the kind of the key `structure` in the analysis of a run, a word or a section, for k components."""
    keys: dict[str, Any] = section if isinstance(section, dict) else {"kind": section or "full"}
    name, equal = keys["kind"], keys.get("variances") == "equal"
    factors = (keys.get("factors") or 1) if name in WITH_FACTORS else 0
    is_full = name == "factor_analytic" and factors >= k - 1
    if is_full or k == 1 or (k == 2 and name not in ("diagonal", "reduced_rank") and not equal):
        return Kind("full", k)
    if k == 2 and equal and name == "ar1":
        return Kind("compound_symmetry", k, equal=True)
    return Kind(name, k, factors, equal, keys.get("distances", "equal"))


def count_surplus(section: Any, k: int) -> int:
    """Parameters of k components that a structure has beyond the elements of the matrix: too many common factors."""
    if not isinstance(section, dict) or section["kind"] != "factor_analytic":
        return 0
    f, n_variances = section.get("factors") or 1, 1 if section.get("variances") == "equal" else k
    return max(_count_loadings(k, f) + n_variances - k * (k + 1) // 2, 0)


def _count_loadings(k: int, factors: int) -> int:
    """Count the free loadings of k components: rotations of f factors set f (f - 1) / 2 of them to 0."""
    return k * factors - factors * (factors - 1) // 2


def find_restriction(term: str, small: Any, large: Any, k: int, rho: float | None) -> Restriction | None:
    """Return what the first structure of k components fixes in the second; None where it is not nested.

    rho: estimated correlation of the first one, if it has one.
    """
    a, b = make_kind(small, k), make_kind(large, k)
    if not _is_nested(a, b, rho):
        return None
    n = b.n_parameters - a.n_parameters
    lacks_factors = (b.name in WITH_FACTORS and b.factors > _count_factors(a)) or (a.name == "reduced_rank" and a != b)
    most = Kind("full", k).n_parameters - a.n_parameters if lacks_factors else n
    return Restriction(
        f"{term} {describe_structure(small)} instead of {describe_structure(large)}", n, most, lacks_factors
    )


def _count_factors(kind: Kind) -> int:
    return 1 if kind.name == "compound_symmetry" else kind.factors


def _is_nested(a: Kind, b: Kind, rho: float | None) -> bool:
    if b.name == "full" or a == b:
        return True
    if a.name == "full" or (b.equal and not a.equal):
        return False
    match a.name, b.name:
        case "reduced_rank", ("reduced_rank" | "factor_analytic"):
            return a.factors <= b.factors
        case _, "reduced_rank":
            return False
        case "factor_analytic", "factor_analytic":
            return a.factors <= b.factors
        case "compound_symmetry", "factor_analytic":
            return rho is not None and rho > 0
        case "ar1", "antedependence":
            return not b.equal
        case "diagonal", _:
            return True
        case _:
            return a.name == b.name and a.distances == b.distances


def describe_structure(section: Any) -> str:
    """'factor_analytic with 2 factors and equal variances'."""
    if not isinstance(section, dict):
        return section or "full"
    parts = []
    if section["kind"] in WITH_FACTORS:
        n = section.get("factors") or 1
        parts.append(f"{n} factor{'s' if n > 1 else ''}")
    if section.get("variances") == "equal":
        parts.append("equal variances")
    if section.get("distances", "equal") != "equal":
        parts.append("distances of numbers")
    return section["kind"] + (f" with {' and '.join(parts)}" if parts else "")
