"""The contract of response families: how the records of a trait are observed, where they are not its values.

Behind each such record stands a liability (a log rate, for counts) that follows the linear model; the sampler holds it
in place of y. A trait without a response is observed as it is (normal).

A family is one class in a file of its own, listed in the registry of this package. The class has its word and keys in
the analysis file, what other sections need to know of it, and how its records are read. An object of it holds the
records of one trait: where their liabilities start, what restricts them, and which kernel draws them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from mmgibbs.errors import DataError
from mmgibbs.pedigree.messages import quoted


class EffectiveDraws(NamedTuple):
    """Effective draws a sweep of the variance of a term with one component, the only random term."""

    sweeps: float  # of serial and structured
    marginal: float


class Cells(NamedTuple):
    """The cells of a column as they are commonly written: '1' for '1.0'."""

    code: np.ndarray  # (n,) int32: the value of each record; -1 where missing
    values: tuple[str, ...]  # in the order in which they occur

    def find(self, record: int) -> str:
        """The cell of a record that has one."""
        value: str = self.values[self.code[record]]
        return value


class Sides(Protocol):
    """The section `values` of a trait: what the cells of its column `censored` mean."""

    def items(self) -> Iterable[tuple[str, tuple[str, ...]]]: ...


class TraitKeys(Protocol):
    """The section of a trait in the analysis file; a key that is not among `Response.keys` has its default."""

    @property
    def name(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def categories(self) -> tuple[str, ...] | None: ...
    @property
    def positive(self) -> str | None: ...
    @property
    def lower(self) -> str | None: ...
    @property
    def upper(self) -> str | None: ...
    @property
    def log(self) -> bool: ...
    @property
    def censored(self) -> str | None: ...
    @property
    def values(self) -> Sides | None: ...
    @property
    def exposure(self) -> str | None: ...
    @property
    def model_fields_set(self) -> set[str]: ...


class TraitTable(Protocol):
    """The columns of a trait in the table of records."""

    name: str  # of the table
    path: str  # of the trait in the analysis file
    place: str  # its column, in messages

    @property
    def keys(self) -> TraitKeys: ...

    def numbers(self, key: str = "column", open_end: float | None = None) -> np.ndarray:
        """(n,) float64, NaN where missing, from the column that a key names. An infinite `open_end` is missing too."""

    def cells(self, key: str = "column") -> Cells:
        """The cells of the column that a key names."""

    def spell(self, cell: str) -> str:
        """A cell as it is commonly written."""

    def number(self, cell: str) -> float:
        """The number that a cell spells, NaN for what is no finite number."""

    def looks_missing(self, cell: str) -> bool:
        """Whether a cell, alone, may mean a missing value."""

    def describe_dates(self, cells: Sequence[str]) -> str | None:
        """What is needed in place of cells that are all dates; None where they are not."""

    def missing_words(self) -> str:
        """The cells that mean a missing value: '., empty'."""

    def refuse(
        self,
        wrong: np.ndarray,
        describe: Callable[[int], str],
        needed: str,
        cells: Callable[[int], Iterable[str]] | None = None,
    ) -> DataError:
        """Make the error that names the rows of these records, to be raised.

        cells: of a record, those that may be codes of a missing value, which the message then explains.
        """


@dataclass(frozen=True)
class Response(ABC):
    """The records of one trait; each subclass is a family. Arrays of a subclass have an element for each record."""

    trait: int
    labels: tuple[str, ...] = field(default=(), init=False)  # (K,) of categories, from low to high; of others none

    kind: ClassVar[str]  # the word in the analysis file
    meaning: ClassVar[str]  # its words in the reference of keys
    keys: ClassVar[tuple[str, ...]] = ()  # of the trait, beside `column`, `missing` and `type` (TraitKeys)
    formula_names: ClassVar[tuple[str, ...]] = ()  # by which a formula calls the family; (): it cannot
    link: ClassVar[str] = ""  # what follows the linear model where the records do not: 'liability', 'log rate'
    criterion: ClassVar[str] = ""  # of an index, on the scale of the records, of {} the trait; '': none is computed
    one_sided: ClassVar[str]  # what the records of a level have in common whose effect has no posterior
    alike: ClassVar[str]  # why records of a fold cannot be ordered
    has_unit_residual: ClassVar[bool] = False  # whether R_tt = 1 sets the scale of the liability
    takes_weights: ClassVar[bool] = False  # whether a record may stand for several
    kernel: ClassVar[str]  # that draws liabilities, 'module:name' below `engines`; see Liabilities.draw
    is_on_gpu: ClassVar[bool] = False  # whether kernels/liabilities.cu draws them too
    is_truncated: ClassVar[bool] = False  # whether they are normal between two ends, which `ends` has
    effective_draws: ClassVar[EffectiveDraws] = EffectiveDraws(0.05, 0.025)

    # -------------------------------------------------------------------------------- the analysis file

    @classmethod
    def check(cls, keys: TraitKeys) -> Iterator[tuple[str, str]]:
        """Key and message of what the section of the trait may not have."""
        yield from ()

    @classmethod
    def name_link(cls, is_log: bool) -> str:
        """Name what follows the linear model; is_log: the key `log`."""
        return cls.link

    # -------------------------------------------------------------------------------- the records

    @classmethod
    @abstractmethod
    def read(cls, trait: int, table: TraitTable) -> Response:
        """Read the records of trait number `trait`. DataError names row, column, found and needed."""

    def columns(self) -> dict[str, np.ndarray]:
        """List the arrays of the records."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def keep(self, rows: np.ndarray) -> Self:
        """The response of some of the records; rows: (n,) bool, or their numbers."""
        return replace(self, **{name: values[rows] for name, values in self.columns().items()})

    @abstractmethod
    def one_sided_masks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) bool each: observed; fits the better the lower its liability is; the higher."""

    def sides(self) -> tuple[np.ndarray, np.ndarray, int]:
        """(lower, upper, free thresholds) of every record, as build/separation.py has them; -2 where not observed."""
        seen, down, up = self.one_sided_masks()
        return np.where(seen & ~down, -1, -2), np.where(seen & ~up, -1, -2), 0

    @abstractmethod
    def tally(self) -> dict[str, int]:
        """Number of records by what is known of them."""

    @abstractmethod
    def values(self) -> np.ndarray:
        """(n,) float64 values of the table, or numbers in the order of their liabilities; NaN where not observed."""

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) what is known of each value: it lies between these, which are equal where it is known."""
        return self.values(), self.values()

    def exposures(self) -> np.ndarray:
        """(n,) the exposure of each record; ones where there is none."""
        return np.ones(len(self.one_sided_masks()[0]))

    # -------------------------------------------------------------------------------- liabilities

    @abstractmethod
    def start(self) -> np.ndarray:
        """(n,) liabilities; NaN where not observed."""

    @abstractmethod
    def shifted(self, value: float) -> Response:
        """The response whose liabilities are less `value`."""

    def start_of_cuts(self) -> np.ndarray:
        """(K + 1,): -inf, t_1 = 0, t_2, ..., inf of categories; of others the ends alone."""
        return np.array([-np.inf, np.inf])

    @property
    def n_free_thresholds(self) -> int:
        """K - 2 of categories, whose first threshold is 0."""
        return max(0, len(self.labels) - 2)

    def kernel_arguments(self, cuts: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the kernel takes beside what it takes of every family."""
        return tuple(self.columns().values())

    def ends(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(place (n,), ends): the liability of a record is between ends[place] and ends[place + 1]."""
        raise TypeError(f"{self.kind}: its liabilities are not truncated normals")

    def expect_draws(self, has_few_records_per_level: bool) -> EffectiveDraws:
        """Effective draws a sweep; has_few_records_per_level: of levels of a random effect, some have few records."""
        return self.effective_draws

    # -------------------------------------------------------------------------------- results

    @abstractmethod
    def describe_scales(self) -> Mapping[str, str]:
        """h2, and h2_observed and incidence where they are reported -> the scale that they are on."""

    def predict(self, eta: np.ndarray, V: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities, mean) of the records in one draw, where eta and V (n,) are mean and variance of liabilities.

        probabilities (n, K) of categories; (n, 1) of what was observed; (n, 0): the mean is that of the liability.
        thresholds (K - 2,): those that are not 0.
        """
        return np.empty((eta.size, 0)), eta

    # Of families with a `criterion` and without categories:

    @classmethod
    def expect(cls, eta: np.ndarray, V: np.ndarray | float) -> np.ndarray:
        """(n,) expected records at an exposure of 1, where eta and V are mean and variance of liabilities."""
        raise NotImplementedError(f"{cls.kind}: a family with a criterion needs expect")

    @classmethod
    def find_moments(cls, eta: np.ndarray, V: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
        """(slope, variance) of the records of a population: dE(y)/deta, and Var(y).

        eta, V and weight (rows,); eta with the logarithm of the exposure.
        """
        raise NotImplementedError(f"{cls.kind}: a family with a criterion needs find_moments")

    # Of all with a `criterion`:

    def simulate(self, liability: np.ndarray, cuts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,) `values` of records drawn anew given their liabilities."""
        raise NotImplementedError(f"{self.kind}: a family with a criterion needs simulate")


def list_values(values: Iterable[str]) -> str:
    """List values in a message, eight at most."""
    shown = [quoted(str(v)) for v in values]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
