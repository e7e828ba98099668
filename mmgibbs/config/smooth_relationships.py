"""Correlations of neighbouring plots and times, and curves and surfaces: `kind: ar1`, `random_walk` and `spline`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag

from mmgibbs.config.fields import NUMBER, WHOLE, Boolean, Choice, Column, Name, Positive
from mmgibbs.config.messages import Expected, Problems
from mmgibbs.config.relationship_base import Relationship

Correlation = Annotated[float, Field(gt=-1, lt=1), NUMBER]
_CORRELATIONS = Expected("a correlation between -1 and 1, or a mapping such as {row: 0.4, column: 0.6}")
Correlations = Annotated[
    Annotated[Correlation, Tag("number")]
    | Annotated[dict[Name, Correlation], Field(min_length=1), _CORRELATIONS, Tag("each")],
    Discriminator(lambda value: "each" if isinstance(value, dict) else "number"),
]
_STEP = Expected("a number above 0, or a mapping such as {row: 10, column: 1}")
Steps = Annotated[
    Annotated[Positive, _STEP, Tag("number")]
    | Annotated[dict[Name, Positive], Field(min_length=1), _STEP, Tag("each")],
    Discriminator(lambda value: "each" if isinstance(value, dict) else "number"),
]


class Autoregression(Relationship):
    """First-order autoregression (AR1): plots of a field in rows and columns, or records in time.

    The levels are the plots, or the times, of each level of `within`; the effect needs no `level`.
    """

    row: Column | None = None
    """Column of the rows of the field, whole numbers: neighbouring rows are correlated by rho, rows d steps apart by
    rho^d. A row without records counts, if it is not at the edge."""

    column: Column | None = None
    """Column of the columns of the field, whole numbers: as of rows."""

    time: Column | None = None
    """Column of times, numbers or words in data.order: records d steps apart are correlated by rho^d."""

    within: Column | None = None
    """Column of the trials, or of the animals: their levels are independent of each other. Default: all records are of
    one."""

    step: Steps | None = None
    """Distance of neighbours, which rho is the correlation over: a number, or {row: R, column: C}. It is one for all
    classes and traits. Default: of times the smallest distance of two; of rows and columns the largest number that
    divides all distances, so that rows 10, 20, 40 are neighbours and two apart."""

    rho: Correlations | None = None
    """Correlation of neighbours, where the estimates begin, or (`fixed`) their value: a number, or {row: R, column: C}.
    Default: 0.5."""

    fixed: Boolean = False
    """The correlations are known and stay at `rho`."""

    name = "ar1"
    related = False
    needs_keys = True

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions of a field that have a correlation."""
        return tuple(key for key in self.parameters if key != "time")

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(key for key in ("row", "column", "time") if getattr(self, key) is not None)

    @property
    def level_columns(self) -> tuple[str, ...]:
        columns = (self.within, self.row, self.column, self.time)
        return tuple(column for column in columns if column is not None)

    @property
    def stated_steps(self) -> dict[str, float]:
        """Direction -> its step, of those that have one."""
        if isinstance(self.step, dict):
            return self.step
        return {} if self.step is None else dict.fromkeys(self.parameters, self.step)

    def with_steps(self, lengths: Mapping[str, float]) -> Self:
        """Set these steps; lengths: column -> its step."""
        steps = {key: lengths[column] for key in self.parameters if (column := getattr(self, key)) in lengths}
        return self.model_copy(update={"step": steps or None})

    @property
    def lacks_parameters(self) -> bool:
        return self.rho is None

    @property
    def has_free_parameters(self) -> bool:
        return not self.fixed

    def with_fixed_parameters(self) -> Self:
        return self.model_copy(update={"fixed": True})

    def starts(self) -> tuple[float, ...]:
        """Correlation of each direction, in the order of `parameters`."""
        if isinstance(self.rho, dict):
            return tuple(self.rho.get(key, 0.5) for key in self.parameters)
        return (0.5 if self.rho is None else self.rho,) * len(self.parameters)

    def check(self, problems: Problems) -> None:
        if not self.parameters:
            problems.add((), "found no direction, needed row, column or both, or time: the columns that have them")
        if self.time is not None and len(self.parameters) > 1:
            problems.add(("time",), "cannot be combined with row or column; needed two terms")
        for key, step in self.stated_steps.items():
            at = ("step", key) if isinstance(self.step, dict) else ("step",)
            if key not in self.parameters:
                problems.add(at, f"found without {key}: COLUMN, needed {' and '.join(self.parameters)}")
            elif key != "time" and step % 1 != 0:
                problems.add(at, f"found {step:g}, needed a whole number of {key}s")
        if len(set(self.level_columns)) < len(self.level_columns):
            problems.add((), "found one column twice, needed a column each for row, column, time and within")
        for key in self.rho if isinstance(self.rho, dict) else ():
            if key not in self.parameters:
                problems.add(("rho", key), f"found without {key}: COLUMN, needed {' and '.join(self.parameters)}")
        if isinstance(self.rho, dict) and self.fixed:
            for key in self.parameters:
                if key not in self.rho:
                    problems.add(("rho", key), "missing, needed the known correlation (fixed: true)")
        if self.fixed and self.rho is None:
            problems.add(("rho",), "missing, needed the known correlation (fixed: true)")


class RandomWalk(Relationship):
    """A curve over a covariate, through its observed values: a random walk of order 1, or of order 2, a smooth curve.

    The levels are the values of `of` within each level of `within`; the effect needs no `level`. Where the curve begins
    is an effect of the model: an intercept, and for order 2 a covariate, its slope.
    """

    of: Column
    """Column of the covariate, numbers or words in data.order, each one step from the next."""

    order: Annotated[int, Field(ge=1, le=2), WHOLE] = 2
    """1: the curve changes from value to value at random, as a process in time; 2: its slope does, so it is smooth (the
    cubic smoothing spline)."""

    within: Column | None = None
    """Class column: each of its levels has a curve of its own. Default: one curve for all records."""

    name = "random_walk"
    related = False
    needs_keys = True

    @property
    def level_columns(self) -> tuple[str, ...]:
        return (self.of,) if self.within is None else (self.within, self.of)

    def check(self, problems: Problems) -> None:
        if self.of == self.within:
            problems.add(("within",), "found the column of `of`, needed another column, or none")


class Spline(Relationship):
    """A P-spline: a smooth curve over a covariate (`of`), or a smooth surface over the rows and columns of a field.

    The levels are the values of the covariate, or the plots, within each level of `within`; the effect needs no
    `level`. Polynomials, such as the line, are effects of the model. A surface has five parts (PS-ANOVA), each a random
    effect of its own: NAME_rows and NAME_columns, curves along them; NAME_rows_by_column and NAME_columns_by_row, whose
    height changes in the other direction; NAME_surface, what is smooth in both.
    """

    of: Column | None = None
    """Column of the covariate of a curve, numbers or words in data.order, each one step from the next."""

    by: Column | None = None
    """Column that the curve is multiplied by, less its mean and in its standard deviations."""

    row: Column | None = None
    """Column of the rows of a field, whole numbers; with `column` a surface."""

    column: Column | None = None
    """Column of the columns of a field, whole numbers."""

    part: Choice[Literal["rows", "columns", "rows_by_column", "columns_by_row", "surface"]] | None = None
    """One part of a surface: rows, columns, rows_by_column, columns_by_row or surface. Default: all of them."""

    within: Column | None = None
    """Class column: each of its levels has a curve or surface of its own. Default: one for all records."""

    knots: Annotated[int, Field(ge=1, le=500), WHOLE] | None = None
    """Number of equal segments between knots. Default: 20 of a curve, 10 in each direction of a surface."""

    degree: Annotated[int, Field(ge=1, le=5), WHOLE] = 3
    """Degree of the B-splines."""

    order: Annotated[int, Field(ge=1, le=3), WHOLE] = 2
    """Order of the differences that are penalised: what is free is a polynomial of one degree less."""

    name = "spline"
    related = False
    needs_keys = True
    parts: ClassVar = {  # of a surface: (column of the curve, column that it is multiplied by)
        "rows": ("row", None),
        "columns": ("column", None),
        "rows_by_column": ("row", "column"),
        "columns_by_row": ("column", "row"),
        "surface": (None, None),
    }

    @property
    def keys_of_curve(self) -> tuple[str | None, str | None]:
        """Keys of the covariate and of the factor of a curve; (None, None) of a surface."""
        if self.of is not None:
            return "of", None if self.by is None else "by"
        return self.parts[self.part or "surface"]

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions of a field; () of a curve."""
        return () if self.of is not None else ("row", "column")

    @property
    def segments(self) -> int:
        return self.knots or (20 if self.of is not None else 10)

    @property
    def level_columns(self) -> tuple[str, ...]:
        columns = self.within, self.of, self.row, self.column
        return tuple(column for column in columns if column is not None)

    @property
    def number_columns(self) -> tuple[str, ...]:
        factor = self.keys_of_curve[1]
        return () if factor is None else (getattr(self, factor),)

    def write_out(self) -> dict[str, Self]:
        """Part -> it alone, of a surface without `part`; '' -> itself of anything else."""
        if self.of is not None or self.part is not None:
            return {"": self}
        return {part: self.model_copy(update={"part": part}) for part in self.parts}

    def check(self, problems: Problems) -> None:
        of_field = [key for key in ("row", "column", "part") if getattr(self, key) is not None]
        if self.of is None and not {"row", "column"} <= set(of_field):
            problems.add((), "found no covariate, needed of: COLUMN for a curve, or row and column for a surface")
        if self.of is not None and of_field:
            problems.add((of_field[0],), "cannot be combined with of; needed two effects")
        if self.by is not None and self.of is None:
            problems.add(("by",), "found without of, the covariate of the curve that it multiplies")
        columns = [c for c in (self.of, self.by, self.row, self.column, self.within) if c is not None]
        if len(set(columns)) < len(columns):
            problems.add((), "found one column twice, needed a column each for of, by, row, column and within")
        if self.segments + self.degree <= self.order:
            problems.add(("knots",), f"found {self.segments}, needed more than order - degree")
