"""Analyses for the tests of data preparation: the attributes of mmgibbs.config.Analysis, built by hand."""

from types import SimpleNamespace as NS


def fixed(column, kind="class", *, traits, degree=1, legendre=None, by=None, prior_variance=None):
    """One entry of model.fixed; legendre is (degree, range or None)."""
    legendre = None if legendre is None else NS(degree=legendre[0], range=legendre[1])
    return NS(column=column, kind=kind, degree=degree, legendre=legendre, by=by, traits=tuple(traits), prior_variance=prior_variance)


def effect(level, *, traits, covariates=None, legendre=None, unknown_level="error"):
    """One effect of a random term; legendre is (column, degree, range or None)."""
    legendre = None if legendre is None else NS(column=legendre[0], degree=legendre[1], range=legendre[2])
    return NS(level=level, traits=tuple(traits), covariates=covariates, legendre=legendre, unknown_level=unknown_level)


def random(relationship="identity", **effects):
    """One entry of model.random; the effect called `_` is the unnamed one."""
    return NS(relationship=relationship, effects={"" if name == "_" else name: e for name, e in effects.items()})


def trait(name, column=None, missing=()):
    return NS(name=name, column=column or name, missing=tuple(missing), type="normal")


def analysis(phenotypes, traits, fixed=None, random=None, *, intercept="auto", pedigree=None, **data):
    """traits: names or the result of `trait`; data: further keys of the data section."""
    keys = dict(
        phenotypes=phenotypes, pedigree=pedigree, separator=None, pedigree_separator=None, header=None, missing=("", "NA"), weights=None,
        pedigree_columns=None, pedigree_header=None, unknown_parent=("", "NA", "0"), add_missing_animals=False, inbreeding="account", groups=None,
    )  # fmt: skip
    assert set(data) <= set(keys), data
    traits = tuple(trait(t) if isinstance(t, str) else t for t in traits)
    return NS(name="test", data=NS(**keys | data), traits=traits, model=NS(intercept=intercept, fixed=fixed or {}, random=random or {}))
