"""The first run after an install or an upgrade: kernels are compiled on all cores, and one line says so.

While this process reads the tables, which needs kernels of its own, another compiles what draws covariance matrices;
later the processes of the chains share out the rest (sampler/kernels.py). Every process finds what others have compiled
in the folder of machine/kernel_cache.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mmgibbs.machine.kernel_cache import kernels_are_kept
from mmgibbs.machine.threads import cores
from mmgibbs.runs.progress import Console

SAID = (
    "compiling kernels: the first run after an install or an upgrade takes up to a minute longer; later runs use them "
    "again"
)
ONLY_SAMPLED = "draw_inverse_wishart"  # the kernels of pedigrees and tables are there once `mmgibbs check` has run


@contextmanager
def compiling_beside(console: Console, sampled: bool) -> Iterator[None]:
    """Where no kernel has been kept yet: says so, and within the block another process compiles those that draw
    variances, if they are sampled and there is a core for it."""
    if kernels_are_kept(ONLY_SAMPLED if sampled else ""):
        yield
        return
    console.say(SAID)
    if cores() == 1 or not sampled:
        yield
        return
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    try:
        beside = _compiling(path)
    except (OSError, ValueError):  # no memory, or Python within another program: it was only a help
        yield
        return
    try:
        yield
    finally:
        beside.terminate()
        beside.wait()


def _compiling(path: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", f"import gc; gc.disable(); import {__name__} as kernels; kernels.compile_draws()"],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # what fails there fails here too, and is said
        start_new_session=True,  # a Ctrl-C is not for it
    )


def compile_draws() -> None:
    """Kernels that any analysis with sampled variances needs, called once each with arrays of the kinds they meet."""
    from mmgibbs.engines.augment import augmentation
    from mmgibbs.model.covariance import CovarianceModel, full_block
    from mmgibbs.model.design import inverse_by_pattern
    from mmgibbs.posterior.moments import Moments
    from mmgibbs.sampler.covariances import draw_covariance
    from mmgibbs.sampler.interweave import cholesky_prior, draw_scaling

    key, eye, whole = (1, 0), np.eye(2), full_block(2)
    covariance = CovarianceModel(eye, False, whole)
    draw_covariance(covariance, 30 * eye, 30, 1, 0, key)
    draw_scaling(cholesky_prior(covariance), 30 * np.eye(3), np.ones(3), eye, 1, 0, key)
    patterns = np.array([[True, True], [True, False]])
    inverse_by_pattern(eye[None], patterns, np.zeros(2, np.int64))
    augmentation(eye, patterns, whole)
    Moments([(4, 2)], 2, 1).add([np.zeros((4, 2))])
