"""Sections of the priors of covariance matrices, made of the keys that each prior names (models/priors)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_origin

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from mmgibbs.config.fields import NUMBER, AlsoTakes, Matrix, Repeated, Rows, Section, to_lower_case
from mmgibbs.config.messages import Expected, listed
from mmgibbs.models.priors import KINDS, find_prior
from mmgibbs.models.priors.base import CovariancePrior
from mmgibbs.models.priors.keys import Key, list_keys
from mmgibbs.models.priors.keys import Matrix as MatrixOfKey


class PriorSection(Section):
    """The section of a prior, with its class."""

    kind_class: ClassVar[type[CovariancePrior]]

    def with_matrices(self, change: Callable[[str, Rows], Rows]) -> Self:
        """Replace every matrix by change(key, matrix)."""
        keys = [key.name for key in list_keys(self.kind_class.keys) if key.type == MatrixOfKey]
        return self.model_copy(update={key: change(key, getattr(self, key)) for key in keys})


def _make_section(keys: Any, base: type[Section]) -> Any:
    """Make the section of a dataclass of keys; its name is without the ending Keys."""
    fields: dict[str, Any] = {}
    for key in list_keys(keys):
        of_file = _type_of_file(key) | None if key.is_optional else _type_of_file(key)
        default = ... if key.default is dataclasses.MISSING else key.default
        fields[key.name] = (of_file, Field(default, description=key.meaning))
    return create_model(keys.__name__.removesuffix("Keys"), __base__=base, __doc__=keys.__doc__, **fields)


def _type_of_file(key: Key) -> Any:
    """The type of a key in terms of fields.py."""
    if dataclasses.is_dataclass(key.type):
        return _make_section(key.type, Section)
    if get_origin(key.type) is Literal:
        return Annotated[key.type, BeforeValidator(to_lower_case)]
    number = Annotated[float, Field(gt=key.limits.above, lt=key.limits.below), NUMBER]
    of_file = {float: number, MatrixOfKey: Matrix, tuple[float, ...]: Repeated[number]}[key.type]
    return Annotated[of_file, Expected(key.limits.expected)] if key.limits.expected else of_file


def _sections() -> Iterator[tuple[str, type[PriorSection]]]:
    for kind in KINDS:
        section = _make_section(kind.keys, PriorSection)
        section.kind_class = kind
        yield kind.key, section


SECTIONS = dict(_sections())  # by the key that tells it from others


def read_prior(section: Mapping[str, Any]) -> PriorSection:
    """Read a section that the program writes itself."""
    return SECTIONS[find_prior(section).key].model_validate(section)


def list_short_forms(*, of_residuals: bool) -> str:
    """'flat, {df, scale} or {half_t: {}}'"""
    suited = [kind.short_form for kind in KINDS if kind.suits_residuals or not of_residuals]
    return listed(["flat", *suited])


def _nothing_for_flat(value: object) -> object:
    return None if value == "flat" else value


if TYPE_CHECKING:
    AnyPriorOrFlat = PriorSection | None
else:  # made of SECTIONS, so that a new prior is one line in the registry
    _AnyPrior = Annotated[
        Union[tuple(Annotated[section, Tag(key)] for key, section in SECTIONS.items())],  # noqa: UP007 - of a tuple
        Discriminator(lambda value: find_prior(value if isinstance(value, dict) else ()).key),
    ]
    AnyPriorOrFlat = Annotated[_AnyPrior | None, BeforeValidator(_nothing_for_flat), AlsoTakes(({"const": "flat"},))]
FORMS = listed(["flat", *(kind.form for kind in KINDS)])  # of the key `prior`, for its meaning
