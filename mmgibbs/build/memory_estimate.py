"""What an analysis needs in memory, and a refusal before anything is built that would not fit."""

from __future__ import annotations

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.config import Analysis
from mmgibbs.equations.structured import estimated_bytes
from mmgibbs.errors import option_name
from mmgibbs.likelihood.memory import refuse_large_lists
from mmgibbs.likelihood.spectral import one_relationship
from mmgibbs.machine.memory import free_bytes, refuse_beyond_free
from mmgibbs.models.covariance import count_elements
from mmgibbs.models.design import Design
from mmgibbs.models.markers import Markers
from mmgibbs.sampler.memory import MOMENTS, bytes_of_results, bytes_per_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

TABLE = 170  # that the table of solutions and its files need for one: 144 measured for 51 million


def refuse_sampling_beyond_memory(
    analysis: Analysis, assembled: Assembled, schedule: Schedule, of_engine: int = 0
) -> None:
    """A DeviceError with the numbers where the equations, a chain and what is kept would not fit into memory.

    of_engine: bytes that its engine needs in each chain beside the equations. Chains that do not fit at once follow
    each other (runs/local.py).
    """
    model, precision = assembled.model, analysis.sampler.precision
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    refuse_beyond_free(
        sampling_bytes(model, schedule, estimated_bytes(model.design, precision), real) + of_engine,
        f"sampling {model.design.n_equations:,} equations in {schedule.chains} chains, {schedule.n_kept:,} draws kept "
        "in each,",
        "fewer sampler.chains, output.save_levels or output.save_marker_draws, a larger sampler.thin, "
        + ("another sampler.engine, " if of_engine else "")
        + "or a machine with more memory",
    )


def refuse_folds_beyond_memory(model: MixedModel, schedule: Schedule, of_engine: int, at_once: int) -> None:
    """A DeviceError with the numbers where so many chains of a validation at once would not fit into memory.

    Each builds equations of its own. of_engine: as above.
    """
    bytes_per_fold = (
        sampling_bytes(model, schedule, estimated_bytes(model.design, "double"), np.dtype(float)) + of_engine
    )
    what = "a chain" if at_once == 1 else f"{at_once} chains at once, each"
    refuse_beyond_free(
        at_once * bytes_per_fold,
        f"validation with {what} of {model.design.n_equations:,} equations",
        (f"fewer workers ({option_name('cluster')}), " if at_once > 1 else "")
        + ("another sampler.engine, " if of_engine else "")
        + "a larger sampler.thin, or a machine with more memory",
    )


def refuse_solving_beyond_memory(analysis: Analysis, assembled: Assembled) -> None:
    """A DeviceError with the numbers where the equations would not fit into memory."""
    design, s = assembled.model.design, analysis.sampler
    needed = solving_bytes(design, s.precision)
    if s.is_sampled_reml:
        needed += sampled_reml_bytes(assembled.model, s.reml_samples)
        what = f"REML of {design.n_equations:,} equations by {s.reml_samples:,} samples"
        refuse_beyond_free(needed, what, "fewer sampler.reml_samples, or a machine with more memory")
        return
    refuse_beyond_free(needed, f"solving {design.n_equations:,} equations", "a machine with more memory")
    if s.method == "reml" and one_relationship(design) is None:  # else there may be no factor
        blocks = [None if c is None else (max(c.blocks, key=len),) for c in assembled.model.covariances]
        refuse_large_lists(design, blocks)  # of the largest group of traits


def sampled_reml_bytes(model: MixedModel, samples: int) -> int:
    """The solutions that each iteration starts from, in single precision, and one right-hand side at least."""
    from mmgibbs.engines.pcg.solver import bytes_per_column  # late: exact REML has no use for PCG

    matrices = [*map(model.covariance, model.random_terms), *model.residual.matrices]
    kept = 1 + samples + count_elements(matrices)
    return 4 * kept * model.design.n_effects + bytes_per_column(model.design)


def solving_bytes(design: Design, precision: str) -> int:
    """The equations, the vectors of an iteration, and the table of solutions."""
    return estimated_bytes(design, precision) + design.n_effects * (8 * 8 + TABLE)


def solutions_that_fit(design: Design, precision: str, wanted: int) -> int:
    """How many of the folds that are wanted can be solved at once, beside the whole data: 1 at least, which is refused
    in its turn."""
    free, bytes_per_solution = free_bytes(), solving_bytes(design, precision)
    return wanted if free is None else max(1, min(wanted, free // max(1, bytes_per_solution) - 1))


def sampling_bytes(model: MixedModel, schedule: Schedule, equations: int, real: np.dtype) -> int:
    """What sampling needs at least, its chains one after another: `equations` (bytes), and the most of what comes in
    turn: a chain at work beside the results of all; these, squared to be pooled; the pooled ones with the table of
    solutions.
    """
    n, chains = model.design.n_effects, schedule.chains
    bytes_of_chain = bytes_of_results(model, schedule)
    markers = sum(bytes_of_markers(m, len(model.design.patterns)) for m in model.design.markers)
    at_work = chains * bytes_of_chain + bytes_per_chain(model.design, real) + model.followed_bytes
    pooling = chains * (bytes_of_chain + n * 16) + n * 40
    table = chains * (bytes_of_chain - n * MOMENTS) + n * (MOMENTS + TABLE)
    return equations + markers + model.bytes_of_marker_draws + max(at_work, pooling, table)


def bytes_of_markers(markers: Markers, n_patterns: int) -> int:
    """The packed genotypes, and of a chain the products within blocks, effects, breeding values and their moments.

    Traits with one prior share the genotypes and the products: they count with the first.
    """
    from mmgibbs.sampler.markers.sweep import BLOCK  # late: analyses without SNP effects have no use for it

    store, p = markers.genotypes, markers.n_snps
    of_chain = 8 * (8 * p + 8 * store.n_animals) + 4 * 8 * 4 * p
    if not markers.first:
        return of_chain
    states = 0 if markers.joint is None else 4 * 8 * p * len(markers.joint.pi)
    return store.array.nbytes + p * 4 * BLOCK * n_patterns + of_chain + states
