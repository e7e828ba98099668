"""Structure of a covariance matrix: key `structure` of a section of `variances`; its kinds are those of
models/structures, and each says which of the other keys it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from mmgibbs.config.fields import Choice, Positive, Section, read_whole_number, to_lower_case
from mmgibbs.config.messages import Expected, unsuitable
from mmgibbs.models.structures import STRUCTURES
from mmgibbs.models.structures.base import Structure as Model

if TYPE_CHECKING:
    Kind = str
else:  # made of STRUCTURES, so that a new kind is one line there
    Kind = Choice[Literal[tuple(STRUCTURES)]]
WITH_FEWER_PARAMETERS = [kind for kind, structure in STRUCTURES.items() if structure.is_structured]
_ORDERED_KINDS = " and ".join(kind for kind, structure in STRUCTURES.items() if structure.needs_order)
_KINDS_WITH_AUTO = " or ".join(kind for kind, structure in STRUCTURES.items() if structure.can_draw_factors)
_MEANINGS = "; ".join(f"{kind}: {s.meaning}" if s.meaning else kind for kind, s in STRUCTURES.items())


def _list_kinds_with(key: str) -> str:
    """'factor_analytic or reduced_rank', which take this key."""
    return " or ".join(kind for kind, structure in STRUCTURES.items() if key in structure.key_names)


def read_factor_count(value: object) -> object:
    """A whole number above 0, or auto."""
    count = to_lower_case(value) if isinstance(value, str) else value
    count = count if count == "auto" else read_whole_number(count)
    if count != "auto" and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise unsuitable()
    return count


FactorCount = Annotated[
    Annotated[int, Field(ge=1)] | Literal["auto"],
    BeforeValidator(read_factor_count),
    Expected("a whole number above 0, or auto"),
]


class Structure(Section):
    """How many parameters the covariance matrix of a random effect has, and which."""

    filled_in: ClassVar = ("positions",)
    short_forms: ClassVar = ({"enum": list(STRUCTURES)},)

    kind: Annotated[
        Kind,
        Field(
            description=f"{_MEANINGS}. The order of {_ORDERED_KINDS} is that of the traits; levels of `by` are in "
            "the order of data.order, of an ordered type of column, or of their numbers or dates."
        ),
    ] = "full"

    factors: Annotated[
        FactorCount | None,
        Field(
            description=f"Number of common factors of {_list_kinds_with('factors')}; auto: the number is drawn too "
            f"({_KINDS_WITH_AUTO}, method: gibbs), and has a posterior probability. Default: 1."
        ),
    ] = None

    variances: Choice[Literal["free", "equal"]] = "free"
    """free or equal variances: of the components, their specific effects (factor_analytic), or what is new in each
    (antedependence)."""

    distances: Choice[Literal["equal", "numbers"]] = "equal"
    """Distances of ar1: equal: every component is one step from the next; numbers: those of the numbers in the levels
    of `by` (1, 2, 4; week 2), so that rho is the correlation over a distance of 1."""

    loading_sd: Annotated[
        Positive | None,
        Field(
            description=f"Prior standard deviation of the loadings of {_list_kinds_with('loading_sd')}, in phenotypic "
            "standard deviations of the trait. Default: 1."
        ),
    ] = None

    positions: tuple[float, ...] | None = None  # of the components, where distances are those of numbers

    @classmethod
    def long_form(cls, value: object) -> object:
        """A word is the kind."""
        return {"kind": value} if isinstance(value, str) else value

    @property
    def is_structured(self) -> bool:
        return self.kind_class.is_structured

    @property
    def kind_class(self) -> type[Model]:
        """The class of its kind."""
        return STRUCTURES[self.kind]

    @property
    def n_scores(self) -> int | None:
        """Common factors of a matrix that has no inverse, its rank; None for others."""
        if not self.kind_class.is_singular:
            return None
        return self.factors if isinstance(self.factors, int) else 1

    @property
    def has_drawn_factors(self) -> bool:
        """True if the number of factors is drawn."""
        return self.factors == "auto"

    def problems(self, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Key and message of what the components of a random effect cannot have."""
        k, kind = len(labels), self.kind_class
        if self.is_structured and k < 2:
            yield "kind", f"expected full for the single component {labels[0]}, got {self.kind}"
        if "factors" not in kind.key_names:
            for key in ("factors", "loading_sd"):
                value = getattr(self, key)
                if value is not None:
                    shown = value if isinstance(value, str) else f"{value:g}"
                    yield key, f"expected no {key} for kind: {self.kind}, got {shown}"
        elif self.factors == "auto":
            if not kind.can_draw_factors:
                yield "factors", f"expected a number for kind: {self.kind}, got auto, which is for {_KINDS_WITH_AUTO}"
            elif k == 2:
                yield "factors", "expected at least 3 components for auto, got 2; needed factors: 1"
        elif k >= 2 and (self.factors or 1) >= k:
            yield "factors", f"expected at most {k - 1} for {k} components, got {self.factors or 1}"
        if self.distances != "equal" and "distances" not in kind.key_names:
            yield "distances", f"expected equal for kind: {self.kind}, got {self.distances}"
        if self.variances != "free" and "variances" not in kind.key_names:
            yield "variances", f"expected free for kind: {self.kind}, got {self.variances}"

    def as_file(self) -> Any:
        if not self.is_structured:
            return self.kind
        unused = () if "distances" in self.kind_class.key_names else ("distances",)
        return {k: v for k, v in super().as_file().items() if v is not None and k not in unused}
