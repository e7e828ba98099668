"""Where a random effect is most of what varies: the maximum once more, in units of what it leaves.

In units of the records about their fixed effects (units.py) variances below 1e-5 count as 0 (boundary.py). With herds a
thousand times as variable as what is within them, all other variances are below that. So where a maximum is on the
boundary, or the data seem to say nothing of some variances, units are compared with what all effects leave of the
records there. If one is far larger, the iteration goes on in smaller units, until variances that are not 0 are off the
boundary. One that stays there as the floor falls, while the likelihood hardly changes, is 0: it is left where it was.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmgibbs.errors import ModelError
from mmgibbs.likelihood.base import Likelihood
from mmgibbs.likelihood.matrices import Variances
from mmgibbs.reml.boundary import Closed, lowered, raise_to_floor, raised
from mmgibbs.reml.elements import Elements, Units
from mmgibbs.reml.maximise import Maximum, Watch, continue_watch, maximise
from mmgibbs.reml.units import point_units

FAR = 10.0  # variance in its unit over the one of what is left, from which smaller units are tried
SMALLER = 1e-3  # variances of the smaller units, at least: a floor of 0 is met in a few steps, and C keeps its digits
ROUNDS = 6  # with which a variance 1e-18 of the largest is off the boundary
RISE = 1e-4  # of the log likelihood for each observation from which the floor was too high: from one 0 to the next it
LEAST = 0.1  # rises by 1e-5 or so; and in all
ROUNDING = 1e-6  # of the log likelihood for each observation
INVOLVED = 1e-3  # square of a component's part in a direction


def maximise_in_fitting_units(
    likelihood: Likelihood,
    elements: Elements,
    start: Variances,
    tolerance: float,
    max_iterations: int,
    watch: Watch | None = None,
) -> tuple[Maximum, Elements]:
    """Maximise, and return the elements in the units that the maximum was found in.

    ModelError where C has no factor first.
    """
    beginning = lowered(elements, start)
    try:
        maximum = maximise(likelihood, elements, beginning, tolerance, max_iterations, watch)
    except ModelError as error:
        raise ModelError(_no_beginning(likelihood, raised(elements, beginning), error)) from None
    for _ in range(0 if maximum.stopped else ROUNDS):
        finer = _finer(maximum, elements)
        if finer is None:
            break
        beginning = _start(likelihood, elements, finer, maximum)
        lower = beginning is not maximum.point.variances  # a step of its own
        iterations = max_iterations - maximum.iterations - lower
        if iterations <= 0:
            return replace(maximum, converged=False), elements
        try:
            again = maximise(
                likelihood, finer, beginning, tolerance, iterations, continue_watch(watch, maximum.iterations)
            )
        except ModelError:
            break
        if again.stopped:
            is_higher = again.point.log_likelihood > maximum.point.log_likelihood
            return (again, finer) if is_higher else (replace(maximum, stopped=True, converged=False), elements)
        more = _is_better(likelihood, again, maximum)
        if not more and not again.converged and again.iterations >= iterations:  # on its way
            return replace(maximum, converged=False), elements
        if not more and not _is_named_better(likelihood, again, maximum, elements):
            break
        history = (*maximum.log_likelihoods, *again.log_likelihoods[0 if lower else 1 :])
        em_steps = maximum.em_steps + again.em_steps
        maximum = replace(again, iterations=len(history) - 1, log_likelihoods=history, em_steps=em_steps)
        elements = finer
        if not more:
            break
    return maximum, elements


def _finer(maximum: Maximum, elements: Elements) -> Elements | None:
    """The elements in smaller units; None where the maximum asks for none."""
    about = maximum.quadratic
    if not about.closed and not about.undetermined.size:
        return None
    fitting = point_units(maximum.point)
    too_large = [
        block.scale**2 > FAR * _block_units(fitting, elements, n) ** 2 for n, block in enumerate(elements.blocks)
    ]
    asked = about.undetermined.size > 0 and any(components.any() for components in too_large)
    if not asked and not any(np.any(too_large[c.block] & (c.direction**2 > INVOLVED)) for c in about.closed):
        return None
    blocks = []
    for n, block in enumerate(elements.blocks):
        unit = np.maximum(_block_units(fitting, elements, n), np.sqrt(SMALLER) * block.scale)
        blocks.append(replace(block, scale=np.where(too_large[n], unit, block.scale)))
    return Elements(tuple(blocks), elements.elements)


def _block_units(units: Units, elements: Elements, number: int) -> np.ndarray:
    """Return the units (k,) of one block."""
    block = elements.blocks[number]
    unit = units.R[block.residual_class] if block.term is None else units.G[block.term]
    assert unit is not None
    return unit[list(block.components)]


def _start(likelihood: Likelihood, elements: Elements, finer: Elements, maximum: Maximum) -> Variances:
    """Start at the maximum, or at what is closed there at the smaller floor, where that is higher.

    It is higher for variances of 0, say.
    """
    at = maximum.point.variances
    lower = elements.variances(elements.vector(at), at)
    for number, (block, small) in enumerate(zip(elements.blocks, finer.blocks, strict=True)):
        shut = [c for c in maximum.quadratic.closed if c.block == number]
        if shut:
            inside = _remove_directions(block.scaled(block.extract(at)), shut) * block.scale[:, None] * block.scale
            matrix = raise_to_floor(small.scaled(inside)) * small.scale[:, None] * small.scale
            block.assign(lower, matrix)
    point = likelihood.try_evaluate(lower)
    return lower if point is not None and point.log_likelihood > maximum.point.log_likelihood else at


def _remove_directions(scaled: np.ndarray, closed: list[Closed]) -> np.ndarray:
    """Remove the variance of a matrix (k, k) in closed directions."""
    shut = np.array([c.direction for c in closed])
    keep = np.eye(len(scaled)) - shut.T @ shut
    return keep @ scaled @ keep


def _is_better(likelihood: Likelihood, again: Maximum, maximum: Maximum) -> bool:
    """Check whether the floor was too high for the likelihood, or fewer directions are closed or undetermined.

    The likelihood counts whether the iteration converged or not.
    """
    rise = again.point.log_likelihood - maximum.point.log_likelihood
    threshold = max(LEAST, RISE * likelihood.freedom)
    return rise > threshold or (
        again.converged
        and rise > -threshold
        and (_open_directions(again) < _open_directions(maximum) or not maximum.converged)
    )


def _is_named_better(likelihood: Likelihood, again: Maximum, maximum: Maximum, elements: Elements) -> bool:
    """Check whether finer units show a combination of components where one component was closed.

    In units in which its components are of one size a combination of them is seen to be one, as at a correlation of 1:
    it was the variance of the component with the larger unit alone.
    """
    combined = any(len(elements.blocks[c.block].components) > 1 for c in maximum.quadratic.closed)
    rise = again.point.log_likelihood - maximum.point.log_likelihood
    return (
        combined
        and again.converged
        and rise > -ROUNDING * likelihood.freedom
        and _open_directions(again) <= _open_directions(maximum)
    )


def _open_directions(maximum: Maximum) -> int:
    """Directions that are closed or undetermined."""
    return len(maximum.quadratic.closed) + maximum.quadratic.undetermined.shape[1]


def _no_beginning(likelihood: Likelihood, start: Variances, error: ModelError) -> str:
    """Describe what is wrong with the starts."""
    terms = likelihood.design.terms
    variances = [f"{terms[i].name} {_several(start.G[i])}" for i in likelihood.random]
    variances.append("residual " + " and ".join(_several(matrix) for matrix in start.R))
    return (
        f"variances.*.start: sampler.method: reml cannot begin there: {error}; found variances of "
        f"{', '.join(variances)}, after those that are estimated were brought nearer those of the records; needed "
        "starts nearer each other"
    )


def _several(matrix: np.ndarray | None) -> str:
    assert matrix is not None
    return ", ".join(f"{v:.1e}" for v in np.diag(matrix))
