"""Analyses for the tests of data preparation, in few words."""

from mmgibbs.config import load_config


def fixed(column, kind="class", *, traits, prior_variance=None, legendre=None, **keys):
    """One entry of model.fixed; legendre is (degree, range or None)."""
    if legendre is not None:
        keys["legendre"] = {"degree": legendre[0]} | ({} if legendre[1] is None else {"range": list(legendre[1])})
    if prior_variance is not None:
        keys["prior"] = {"variance": prior_variance}
    return {"column": column, "kind": kind, "traits": list(traits)} | keys


def effect(level, *, traits, legendre=None, covariates=None, **keys):
    """One effect of a random term; legendre is (column, degree, range or None)."""
    if legendre is not None:
        column, degree, span = legendre
        keys["legendre"] = {"column": column, "degree": degree} | ({} if span is None else {"range": list(span)})
    if covariates is not None:
        keys["covariates"] = list(covariates)
    return {"level": level, "traits": list(traits)} | keys


def random(relationship="identity", **effects):
    """One entry of model.random; the effect called `_` is the unnamed one."""
    if "_" in effects:
        return {"relationship": str(relationship)} | effects["_"]
    return {"relationship": str(relationship), "effects": effects}


def trait(name, column=None, missing=()):
    return {name: {"column": column or name, "missing": list(missing)}}


def analysis(phenotypes, traits, fixed=None, random=None, *, intercept="auto", **data):
    """traits: names or results of `trait`; data: further keys of the data section, `pedigree` among them."""
    named = {}
    for t in traits:
        named |= {t: {}} if isinstance(t, str) else t
    data = {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
    tables = {key: data.pop(key) for key in ("pedigree",) if key in data}
    tables = {key: value if hasattr(value, "columns") else str(value) for key, value in tables.items()}
    phenotypes = phenotypes if hasattr(phenotypes, "columns") else str(phenotypes)
    return load_config(
        {
            "name": "test",
            "data": {"phenotypes": phenotypes} | tables | data,
            "traits": named,
            "model": {"intercept": intercept, "fixed": fixed or {}, "random": random or {}},
        }
    )


def as_mapping(records, traits=("y",), *, random=None, fixed=None, variances=None, method="blup", **sections):
    """An analysis as an analysis file has it; sections replace those made of the other arguments."""
    return {
        "data": {"phenotypes": records},
        "traits": traits if isinstance(traits, dict) else list(traits),
        "model": {"fixed": fixed or {}, "random": random or {}},
        "variances": variances or {},
        "sampler": {"method": method},
        "output": {"directory": "run"},
    } | sections
