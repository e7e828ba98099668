"""The variances that a finished run found, as overrides of the starts of an analysis of the same model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from mmgibbs.config import Analysis
from mmgibbs.config.complete_variances import implied_variances
from mmgibbs.errors import ConfigError, option, option_name
from mmgibbs.report.finished import read_finished

# of relationships: values of their parameters, whether they are known, and the distance that they are correlations over
PARAMETER_KEYS = ("rho", "fixed", "step")


def read_starts(run: str | os.PathLike, analysis: Analysis) -> list[str]:
    """Overrides that put the posterior means of a finished run in place of the starts."""
    try:
        finished = read_finished(run)
    except ConfigError as error:
        raise ConfigError(f"{option_name('variances')}: {str(error).removeprefix('report: ')}") from None
    given = option("variances", str(run))
    mean = dict(finished.summary.select("parameter", "mean").iter_rows())
    ours = analysis.resolved()["model"]["random"]
    theirs = finished.record.get("analysis", {}).get("model", {}).get("random")
    markers = finished.record.get("analysis", {}).get("model", {}).get("markers") or {}
    if {name: of.get("prior") for name, of in markers.items()} != {
        name: of.prior for name, of in analysis.model.markers.items()
    }:
        raise ConfigError(
            f"{given}: its terms of SNP effects are not those of this analysis; needed a run of the same model"
        )
    traits = [t.name for t in analysis.traits]
    is_same_model = _drop_parameters(theirs) == _drop_parameters(ours)
    if not is_same_model or list(finished.record["analysis"]["traits"]) != traits:
        raise ConfigError(
            f"{given}: its traits or random effects are not those of this analysis; needed a run of the same model"
        )
    out = []
    by_class = list(finished.record.get("data", {}).get("residual_classes", ()))
    if (by_class != []) != (analysis.variances.residual.by is not None):
        raise ConfigError(
            f"{given}: the classes of its residuals are not those of this analysis; needed a run of the same model"
        )
    if by_class:
        traits, starts = list(finished.record["analysis"]["traits"]), {}
        for of in by_class:
            starts[of] = {
                "start": [
                    [
                        mean[f"residual.var[{a}|{of}]"] if a == b else _covariance(mean, "residual", a, b, of)
                        for b in traits
                    ]
                    for a in traits
                ]
            }
        out.append(f"variances.residual.classes={json.dumps(starts)}")
    implied = implied_variances(analysis.model)  # they follow from those of SNP effects
    for name in (*(n for n in ours if n not in implied), *(() if by_class else ("residual",))):
        first, last = f"{name}.var[", "]"
        labels = [p.removeprefix(first).removesuffix(last) for p in mean if p.startswith(first)]
        start = [
            [mean[f"{name}.var[{a}]"] if a == b else _covariance(mean, name, a, b) for b in labels] for a in labels
        ]
        out.append(f"variances.{name}.start={json.dumps(start)}")
    steps = finished.record.get("data", {}).get("steps", {})
    for name in ours:
        out += _parameters_of_relationship(name, analysis, mean, steps.get(name, {}))
    return out + [line for name in analysis.model.markers for line in _starts_of_markers(name, analysis, mean)]


def _drop_parameters(random: Mapping[str, Any] | None) -> dict[str, Any]:
    """Random terms of run.json without the values of parameters of relationships, which may be starts or estimates."""
    out = {}
    for name, section in (random or {}).items():
        relationship = section.get("relationship")
        if isinstance(relationship, Mapping):
            relationship = {key: value for key, value in relationship.items() if key not in PARAMETER_KEYS}
        out[name] = {**section, "relationship": relationship}
    return out


def _parameters_of_relationship(
    name: str, analysis: Analysis, mean: Mapping[str, float], steps: Mapping[str, float]
) -> list[str]:
    """The parameters of the relationship of a term, such as correlations of neighbours, fixed; steps: column -> the
    distance of neighbours in the finished run."""
    relationship = analysis.model.random[name].relationship
    names = relationship.parameters
    known = {key: mean[label] for key in names if (label := f"{name}.rho[{key}]") in mean}
    if not known:
        return []
    at = f"model.random.{name}.relationship"
    out = [f"{at}.rho={json.dumps(known)}", f"{at}.fixed=true"]
    stated = relationship.with_steps(steps).stated_steps
    if stated:
        out.append(f"{at}.step={json.dumps(stated)}")
    return out


def _starts_of_markers(name: str, analysis: Analysis, mean: dict) -> list[str]:
    """Variance and class shares of the effects of SNPs, fixed; none where the prior has no common variance, or where
    several traits have one each: those are sampled in every chain."""
    section = analysis.model.markers[name]
    traits = section.traits or tuple(t.name for t in analysis.traits)
    if len(traits) != 1 or not section.prior_kind.has_common_variance:
        return []
    at = f"model.markers.{name}"
    out = [f"{at}.variance={json.dumps({'start': mean[f'{name}.effect_var[{traits[0]}]'], 'fixed': True})}"]
    shares = [mean[p] for k in range(len(section.classes)) if (p := f"{name}.pi[{traits[0]}:{k}]") in mean]
    return [*out, f"{at}.pi={json.dumps({'start': shares, 'fixed': True})}"] if shares else out


def _covariance(mean: dict, name: str, a: str, b: str, of_class: str = "") -> float:
    """0 where the model has none (`structure: diagonal`, traits never recorded together)."""
    end = f"|{of_class}]" if of_class else "]"
    return mean.get(f"{name}.cov[{a},{b}{end}", mean.get(f"{name}.cov[{b},{a}{end}", 0.0))
