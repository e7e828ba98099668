"""What an analysis needs in memory, and a refusal before anything is built that would not fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmgibbs.build.assemble import Assembled
from mmgibbs.config import Analysis
from mmgibbs.equations.structured import estimated_bytes
from mmgibbs.errors import option_name
from mmgibbs.genotypes.relationship import MATRICES
from mmgibbs.likelihood.memory import refuse_large_lists
from mmgibbs.likelihood.spectral import one_relationship
from mmgibbs.machine.memory import free_bytes, refuse_beyond_free
from mmgibbs.models.covariance import count_elements
from mmgibbs.models.design import Design
from mmgibbs.models.markers import Markers
from mmgibbs.sampler.memory import MOMENTS, bytes_of_results, bytes_per_chain
from mmgibbs.sampler.mixed_model import MixedModel
from mmgibbs.sampler.schedule import Schedule

OF_RECORD = 160  # that a record takes while tables are read and checked: measured
OF_ANIMAL = 480  # the same of an animal, with its row of the pedigree
TABLE = 170  # that the table of solutions and its files need for one: 144 measured for 51 million


@dataclass(frozen=True)
class MemoryCount:
    """Bytes of a run: of what is read, held by the time that it is counted; of the matrices that relationships were
    made from; and of what comes after."""

    tables: int
    matrices: int
    solving: int

    @property
    def peak(self) -> int:
        """The most bytes at any time."""
        return self.tables + max(self.matrices, self.solving)


def count_sampling(analysis: Analysis, model: MixedModel, schedule: Schedule, of_engine: int = 0) -> MemoryCount:
    """Count the memory of a run that samples, its chains one after another; of_engine: as below."""
    precision = analysis.sampler.precision
    real = np.dtype(np.float32 if precision == "single" else np.float64)
    needed = sampling_bytes(model, schedule, estimated_bytes(model.design, precision), real) + of_engine
    return MemoryCount(*_count_read(model.design), needed)


def count_solving(analysis: Analysis, model: MixedModel, of_factor: int = 0) -> MemoryCount:
    """Count the memory of BLUP and REML; of_factor: bytes of the likelihood, or of the inverse for PEV."""
    needed = solving_bytes(model.design, analysis.sampler.precision) + of_factor
    if analysis.sampler.is_sampled_reml:
        needed += sampled_reml_bytes(model, analysis.sampler.reml_samples)
    return MemoryCount(*_count_read(model.design), needed)


def _count_read(design: Design) -> tuple[int, int]:
    """Bytes of tables, and of the matrices of animals that are all related."""
    related = [t.relationship.dense.levels.size for t in design.terms if t.relationship.dense is not None]
    animals = max((t.n_levels for t in design.terms if t.kind == "random"), default=0)
    return OF_RECORD * design.n_records + OF_ANIMAL * animals, 8 * MATRICES * max(related, default=0) ** 2


def count_factor(analysis: Analysis, assembled: Assembled) -> int:
    """Bytes of the likelihood of REML, of the largest group of traits, or of the inverse for the PEV of BLUP; its
    pattern is looked for, and nothing is factorised."""
    from mmgibbs.engines.direct.solutions import direct_likelihood, needs_factor  # late: sampling has no use for them
    from mmgibbs.engines.direct.standard_errors import count_posterior_sd
    from mmgibbs.likelihood.choice import count_likelihood
    from mmgibbs.likelihood.trait_groups import group_traits, take_traits

    model, s = assembled.model, analysis.sampler
    parts = model.design, model.covariances, model.residual
    if s.method == "reml":
        groups = group_traits(*parts)
        if len(groups) == 1:  # with the structures of its matrices
            return count_likelihood(*parts)
        taken = [take_traits(*parts, traits) for traits in groups]
        return max(count_likelihood(group.design, group.covariances, group.residual) for group in taken)
    G = [None if c is None else c.start for c in model.covariances]
    if needs_factor(model.design):
        return direct_likelihood(model.design, G).bytes
    return count_posterior_sd(model.design, G, s.pev_limit)


def refuse_sampling_beyond_memory(
    analysis: Analysis, assembled: Assembled, schedule: Schedule, of_engine: int = 0
) -> None:
    """A DeviceError with the numbers where the equations, a chain and what is kept would not fit into memory.

    of_engine: bytes that its engine needs in each chain beside the equations. Chains that do not fit at once follow
    each other (runs/local.py).
    """
    model = assembled.model
    refuse_beyond_free(
        count_sampling(analysis, model, schedule, of_engine).solving,
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
    needed = count_solving(analysis, assembled.model).solving
    if s.is_sampled_reml:
        what = f"REML of {design.n_equations:,} equations by {s.reml_samples:,} samples"
        refuse_beyond_free(needed, what, "fewer sampler.reml_samples, or a machine with more memory")
        return
    refuse_beyond_free(needed, f"solving {design.n_equations:,} equations", "a machine with more memory")
    if s.method == "reml" and one_relationship(design) is None:  # else there may be no factor
        from mmgibbs.likelihood.choice import count_factors  # late: sampling has no use for it

        covariances = assembled.model.covariances
        if not count_factors(design, covariances):  # scores have no such lists
            refuse_large_lists(design, [None if c is None else (max(c.blocks, key=len),) for c in covariances])


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
    """Count how many of the folds can be solved at once, beside the whole data.

    It is 1 at least, which is refused in its turn.
    """
    free, bytes_per_solution = free_bytes(), solving_bytes(design, precision)
    return wanted if free is None else max(1, min(wanted, free // max(1, bytes_per_solution) - 1))


def sampling_bytes(model: MixedModel, schedule: Schedule, equations: int, real: np.dtype) -> int:
    """Count the bytes that sampling needs at least, its chains one after another.

    These are `equations` (bytes), and the most of what comes in turn: a chain at work beside the results of all; these,
    squared to be pooled; the pooled ones with the table of solutions.
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
    from mmgibbs.sampler.markers.block import BLOCK  # late: analyses without SNP effects have no use for it

    store, p = markers.genotypes, markers.n_snps
    of_chain = 8 * (8 * p + 8 * store.n_animals) + 4 * 8 * 4 * p
    if not markers.first:
        return of_chain
    states = 0 if markers.joint is None else 4 * 8 * p * len(markers.joint.pi)
    return store.array.nbytes + p * 4 * BLOCK * n_patterns + of_chain + states
