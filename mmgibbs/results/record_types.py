"""Which kinds of values run.json has, as far as pages and commands use them. Other keys may hold anything.

The file may come from someone else, or from an earlier version, which has fewer keys: none is required here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from mmgibbs.models.priors import KINDS
from mmgibbs.models.priors.keys import list_keys

Number = int | float
_Numbers = Number | list[Number] | list[list[Number]]
Counts = dict[str, int]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class _Records(_Section):
    read: int = 0
    used: int = 0
    left_out: Counts = {}


class _Genotypes(_Section):
    class Dropped(_Section):
        what: str
        why: str
        count: int

    file: str = ""
    read: Counts = {}
    kept: Counts = {}
    matched: Counts = {}
    dropped: list[Dropped] = []


class _Data(_Section):
    records: _Records = _Records()
    observations: Counts = {}
    observed_as: dict[str, Counts] = {}
    residual_classes: Counts = {}
    levels: Counts = {}
    genotypes: _Genotypes = _Genotypes()
    animals: int = 0
    animals_with_records: int = 0
    founders_added: int = 0
    groups: int = 0
    predictors: int = 0


class _Relationship(_Section):
    words: str
    symbol: str
    sentence: str
    related: bool
    of_pedigree: bool
    degrees_of_freedom: Number = 0
    reliability: str | None = None


class _Target(_Section):
    target: str
    needed: Number
    found: Number | None = None
    met: bool


class _Liability(_Section):
    categories: list[str] = []
    thresholds: list[Number] = []
    incidence: list[Number] = []
    mean: Number = 0
    sd: Number = 1


class _ExtremeLevels(_Section):
    trait: str
    effect: str
    levels: int
    of: int
    first: list[str]


class _Decisions(_Section):
    term: str
    candidates: int
    criteria: dict[str, dict[str, Number]]
    ranks: str
    selected: Counts = {}


class _PeakMemory(_Section):
    main: int
    workers: Counts = {}


class _Negative(_Section):
    negative: int
    of: int
    lowest: Number


class _Described(_Section):
    model: str
    equations: list[str] = []
    priors: list[str] = []
    where: list[str] = []


class _Legendre(_Section):
    column: str | None = None
    degree: int
    range: list[Number] | None = None


class _FixedPrior(_Section):
    variance: Number | dict[str, Number | None] | None = None


class _Fixed(_Section):
    prior: str | _FixedPrior = "flat"
    column: str = ""
    kind: str = "class"
    traits: list[str] | None = None
    by: str | None = None
    degree: int | None = None
    legendre: _Legendre | None = None


class _Effect(_Section):
    level: str = ""
    traits: list[str] | None = None
    covariates: list[str] | None = None
    legendre: _Legendre | None = None


class _Random(_Effect):
    relationship: str | dict[str, Any] | None = None
    effects: dict[str, _Effect] | None = None


class _Markers(_Section):
    level: str = ""
    prior: str = ""
    single_step: str = "none"
    traits: list[str] | None = None
    classes: list[Number] | None = None
    variance: dict[str, Any] | None = None


def _prior_type(keys: type) -> Any:
    """What a record may have for a section of these keys; those of several numbers may be missing."""
    fields: dict[str, Any] = {}
    for k in list_keys(keys):
        if dataclasses.is_dataclass(k.type):
            kind = _prior_type(k.type)  # type: ignore[arg-type]
        else:
            kind = str if get_origin(k.type) is Literal else Number if k.type is float else _Numbers
        fields[k.name] = (kind | None, None) if k.is_optional or kind is _Numbers else (kind, ...)
    return create_model(keys.__name__, __base__=_Section, **fields)


if TYPE_CHECKING:
    _AnyPrior = Any
else:
    _AnyPrior = Union[(str, *(_prior_type(kind.keys) for kind in KINDS), None)]


class _Structure(_Section):
    kind: str
    factors: int | str | None = None
    variances: str = "free"
    loading_sd: Number | None = None


class _Variance(_Section):
    fixed: bool = False
    structure: str | _Structure = "full"
    prior: _AnyPrior = None
    by: str | None = None


class _Model(_Section):
    fixed: dict[str, _Fixed] | None = None
    random: dict[str, _Random] | None = None
    markers: dict[str, _Markers] | None = None


class _Trait(_Section):
    column: str | None = None
    type: str = "normal"
    exposure: str | None = None


class _TablesRead(_Section):
    weights: str | None = None
    groups: dict[str, Any] | None = None
    genotypes: dict[str, Any] | None = None


class _Sampler(_Section):
    method: str = "gibbs"
    chains: int = 1
    burn_in: int = 0
    samples: int = 0
    thin: int = 1


class _Candidates(_Section):
    rank_interval: Number = 0.0
    top: list[Number] = []


class _Output(_Section):
    save_marker_draws: int | None = None
    escape_formulas: bool = False


class _Analysis(_Section):
    name: str = ""
    data: _TablesRead = _TablesRead()
    traits: dict[str, _Trait] = {}
    model: _Model = _Model()
    variances: dict[str, str | _Variance] = {}
    sampler: _Sampler = _Sampler()
    decisions: _Candidates | None = None
    output: _Output = _Output()


class _ReferenceLevels(_Section):
    fixed: dict[str, dict[str, str]] = {}
    groups: dict[str, dict[str, str]] = {}
    means: dict[str, str] = {}


class _Checksum(_Section):
    bytes: int
    sha256: str


_KEYS: dict[str, Any] = {
    "name": str,
    "finished": str,
    "run_id": str,
    "data_files": dict[str, str],
    "versions": dict[str, str],
    "analysis": _Analysis,
    "seed": int,
    "inbreeding": str,
    "data": _Data,
    "equations": int,
    "bytes": int,
    "relationships": dict[str, _Relationship],
    "levels": Counts,
    "device": str,
    "precision": str,
    "method": str,
    "engine": str,
    "engine_chosen_because": str | None,
    "threads": int | None,
    "interweaved_terms": list[str],
    "sweeps_per_chain": int,
    "kept_draws_per_chain": int,
    "variances_counted": dict[str, dict[str, list[str] | str | None]],
    "scales": dict[str, dict[str, str]],
    "seconds": dict[str, Any],
    "peak_memory": _PeakMemory,
    "negative_reliabilities": _Negative,
    "warnings": list[str],
    "notes": list[str],
    "liabilities": dict[str, _Liability],
    "extreme_levels": list[_ExtremeLevels],
    "files": list[str],
    "plugin": str,
    "options": dict[str, Any],
    "options_chosen_because": dict[str, str],
    "described": _Described,
    "stop": list[_Target],
    "decisions": _Decisions,
    "iterations": int,
    "log_likelihood": Number,
    "aic": Number,
    "bic": Number,
    "reference_levels": _ReferenceLevels,
    "unfinished": str,
    "checksums": dict[str, _Checksum],
    "sha256": str,
}


@cache
def _record() -> type[BaseModel]:
    """The whole file. No key has to be there, but one that is must have its kind."""
    fields: dict[str, Any] = {name: (kind, None) for name, kind in _KEYS.items()}
    return create_model("Record", __base__=_Section, **fields)


def wrong_types(record: Mapping[str, Any]) -> str | None:
    """The first value of a kind that no run writes, in words; None if all are as they should be."""
    try:
        _record().model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(_keys(record, first["loc"]))
        needed = first["msg"].removeprefix("Input should be ").removeprefix("Field required") or "a value"
        return f"{where}: expected {needed}, got {_shown(first['input'])}"
    return None


def _keys(value: Any, location: tuple[int | str, ...]) -> list[str]:
    """The keys among the parts of a location, which names the kinds that were tried too."""
    keys = []
    for key in location:
        if key in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(key, int):
            value = value[key]
            keys.append(str(key))
    return keys


def _shown(value: object) -> str:
    text = f"a section of {len(value)} keys" if isinstance(value, (Mapping, list)) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
