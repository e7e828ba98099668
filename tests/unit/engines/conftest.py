"""The structured engine's kernels compiled by g++, once per precision: for the example models and the beef system."""

import numpy as np
import pytest
from helpers.host_device import build
from reference import models

from mmgibbs.engines.coloured_gpu.source import kernels, source
from mmgibbs.models.relationships.identity import IdentityLists
from mmgibbs.models.relationships.pedigree import PedigreeLists

REAL = {"double": np.dtype(np.float64), "single": np.dtype(np.float32)}


def kind(term) -> type:
    """The lists that a term's relationship becomes."""
    return type(term.relationship.lists(np.arange(term.n_levels), np.dtype(float)))


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """shim(precision): the library of every kernel that an example model needs in this precision."""
    folder, made = tmp_path_factory.mktemp("structured"), {}

    def library(precision: str):
        if precision not in made:
            real, names = (
                REAL[precision],
                set(kernels([(1, IdentityLists), (3, IdentityLists), (4, PedigreeLists)], 3, REAL[precision])),
            )
            for name in (*models.ON_GPU, *models.DENSE):
                design = models.example(name).design
                kinds = [(t.n_components, kind(t)) for t in design.terms]
                has_dense = [t.relationship.dense is not None for t in design.terms]
                dense = [(*of, real) for of, is_dense in zip(kinds, has_dense, strict=True) if is_dense]
                names |= set(kernels(kinds, design.n_traits, real, dense))
            made[precision] = build(folder, precision, source(real, np.dtype(np.uint8)), sorted(names))
        return made[precision]

    return library
