"""Genomic relationships on simulated genotypes: seconds of G and of its inverse, milliseconds of a sweep, PCG to 1e-10.

Genotypes are independent binomials with frequencies from 0.05 to 0.5, packed; every genotyped animal has a record, G is
blended with 5 % of I. With --animals, single-step beside the pedigree alone: the simulated beef system of three traits,
whose youngest animals have such genotypes, G blended with 5 % of A22. The bound of bytes reads one half of the inverse,
once.

With --core, the inverse by a core of so many animals as products (models/relationships/core.py): PCG alone, as no sweep
can read it. --formed forms it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.markers import simulated
from mmgibbs.engines.choice import EngineChoice
from mmgibbs.engines.pcg.solver import PcgSolver
from mmgibbs.equations.core import CoreLevels
from mmgibbs.equations.partition import partition
from mmgibbs.equations.structured import StructuredEquations, structured_equations
from mmgibbs.genotypes.relationship import cross_products, scaled_1, vanraden_1
from mmgibbs.genotypes.store import Store
from mmgibbs.machine.memory import peak_bytes
from mmgibbs.machine.threads import Threads
from mmgibbs.models.design import Design
from mmgibbs.models.relationships.base import DenseBlock, Relationship
from mmgibbs.models.relationships.core import CoreBlock, CoreParts, parts_of_core
from mmgibbs.models.relationships.genomic import Genomic
from mmgibbs.models.relationships.inverse import invert
from mmgibbs.models.relationships.pedigree import Pedigree
from mmgibbs.models.relationships.single_step import SingleStep
from mmgibbs.models.terms import Effect, Flat, Levels, Related, Term
from mmgibbs.pedigree.partitioned import SubsetInverse, inverse_among
from mmgibbs.pedigree.relationship import Relatives
from mmgibbs.pedigree.relationship_products import relationship_block
from mmgibbs.simulation.simulate import beef_design, simulate_beef

BLEND = 0.05
TOLERANCE = 1e-10
_NONE = CoreParts(*(np.empty(0, np.int64),) * 2, np.empty((0, 0)), np.empty((0, 0)), np.empty(0), 0.0)


def bench_relationships(args: argparse.Namespace) -> dict:
    if args.animals is None:
        return {"genomic": [_genomic(size, args) for size in args.sizes], "peak resident bytes": peak_bytes()}
    return {"single-step": _single_step(args), "peak resident bytes": peak_bytes()}


def _clocked(row: dict, name: str, call: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    found = call()
    row[name] = time.perf_counter() - started
    return found


def _dense(
    row: dict, n: int, p: int, args: argparse.Namespace, A22: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(G^-1, records of the animals); G blended with A22 or I."""
    store, y = simulated(n, p, args.seed)
    known, first, _ = store.moments().T
    frequency = first / (2 * known)
    G = _clocked(row, "s of G", lambda: vanraden_1(store, frequency, 2 * frequency)).matrix
    G *= 1 - BLEND
    if A22 is None:
        G[np.diag_indices(n)] += BLEND
    else:
        G += BLEND * A22
    found = _clocked(row, "s of its inverse", lambda: invert(G))
    row |= {"condition": found.condition, "error": found.error}
    return found.values, y


def _genomic(size: str, args: argparse.Namespace) -> dict:
    n, p = (int(part) for part in size.split("x"))
    row: dict = {"animals x SNPs": size}
    every_level = np.arange(n, dtype=np.int32)
    block: DenseBlock | CoreBlock
    if args.core:
        store, y = simulated(n, p, args.seed)
        block = _by_core(row, store, args, None, CoreBlock(every_level, _NONE))
    else:
        values, y = _dense(row, n, p, args, None)
        block = DenseBlock(every_level, values.astype(_real(args), copy=False))
    every = Effect("", np.arange(n, dtype=np.int32), (0,))
    terms = (
        Term("intercept", Levels((Effect("", np.zeros(n, np.int32), (0,)),), 1), Flat()),
        Term("genetic", Levels((every,), n), Related(Genomic(block, np.ones(n), {}))),
    )
    design = Design(("y",), y[:, None], np.zeros(n, np.int32), np.ones((1, 1), bool), np.ones(n), terms)
    return row | _measured(design, [None, np.array([[0.5]])], np.array([[0.5]]), block.bytes(8), args)


def _by_core(
    row: dict, store: Store, args: argparse.Namespace, kin: Relatives | None, empty: CoreBlock
) -> DenseBlock | CoreBlock:
    """The block with its inverse by a core at random, G blended with A22 or I: `empty` has its levels and A22^-1."""
    n, levels = store.n_animals, empty.levels.astype(np.int64)
    core = np.sort(np.random.default_rng(args.seed).permutation(n)[: args.core])
    known, first, _ = store.moments().T
    frequency = first / (2 * known)
    G = _clocked(row, "s of G", lambda: cross_products(*scaled_1(store, frequency, 2 * frequency), core))
    K, diagonal = G.matrix, (1 - BLEND) * G.diagonal
    K *= 1 - BLEND
    if kin is None:
        K[core, np.arange(core.size)] += BLEND
        diagonal += BLEND
    else:
        with_core = partial(relationship_block, kin.sire, kin.dam, kin.inbreeding, levels, core)
        K += BLEND * _clocked(row, "s of A22", with_core)
        diagonal += BLEND * (1 + kin.inbreeding[levels])
    parts = _clocked(row, "s of its inverse", lambda: parts_of_core(K, diagonal, core))
    real = _real(args)
    parts = parts._replace(of_core=parts.of_core.astype(real), products=parts.products.astype(real))
    block = replace(empty, parts=parts)
    if not args.formed:
        return block
    return DenseBlock(block.levels, _clocked(row, "s of forming it", lambda: block.values.astype(real)))


def _single_step(args: argparse.Namespace) -> list[dict]:
    """Pedigree alone, then with the youngest animals of each size genotyped."""
    beef = simulate_beef(args.animals, args.seed)
    design = beef_design(beef)
    of_pedigree: dict = {"genotyped x SNPs": "none"}
    rows = [of_pedigree | _measured(design, beef.G, beef.R, 0, args)]
    number = next(i for i, t in enumerate(design.terms) if isinstance(t.relationship, Pedigree))
    listed = design.terms[number].relationship
    assert isinstance(listed, Pedigree)
    kin = listed.relatives
    for size in args.sizes:
        m, p = (int(part) for part in size.split("x"))
        row: dict = {"genotyped x SNPs": size}
        chosen = np.arange(args.animals - m, args.animals)
        if args.core:
            empty = CoreBlock(chosen.astype(np.int32), _NONE, 1.0, SubsetInverse(kin, chosen), 1.0)
            by_core = _by_core(row, simulated(m, p, args.seed)[0], args, kin, empty)
            of_core = _with(design, number, SingleStep(kin, by_core, {}))
            rows.append(row | _measured(of_core, beef.G, beef.R, by_core.bytes(8), args))
            continue
        A22 = _clocked(row, "s of A22", partial(relationship_block, kin.sire, kin.dam, kin.inbreeding, chosen))
        S, _ = _dense(row, m, p, args, A22)
        S -= _clocked(row, "s of its inverse, A22", partial(inverse_among, kin, chosen))
        block = DenseBlock(chosen.astype(np.int32), S.astype(_real(args), copy=False))
        of_genotyped = _with(design, number, SingleStep(kin, block, {}))
        rows.append(row | _measured(of_genotyped, beef.G, beef.R, block.values.nbytes, args))
    return rows


def _real(args: argparse.Namespace) -> type:
    return np.float32 if args.precision == "single" else np.float64


def _with(design: Design, number: int, kind: Relationship) -> Design:
    terms = list(design.terms)
    terms[number] = replace(terms[number], prior=Related(kind))
    return replace(design, terms=tuple(terms))


def _measured(
    design: Design, G: Sequence[np.ndarray | None], R: np.ndarray, size: int, args: argparse.Namespace
) -> dict:
    kind = "colour" if args.threads > 1 else "term"
    equations = structured_equations(design, partition(design, kind), args.precision)
    swept = not any(isinstance(d, CoreLevels) for d in equations.dense)
    bytes_read = size / 2 if swept else size  # a sweep reads one half of a matrix, an iteration of PCG all of it
    row = {"bytes": size, "bound of bytes, ms": 1e3 * bytes_read / (args.bandwidth * 1e9)}
    if swept:
        row |= _sweeps(design, equations, G, R, args)
    if args.pcg:
        solver = PcgSolver(equations, Threads(args.threads))
        _clocked(row, "s of the preconditioner", partial(solver.set_variances, G, R))
        row["iterations of PCG"] = _clocked(row, "s of PCG", partial(solver.solve, TOLERANCE)).iterations
    return row


def _sweeps(
    design: Design,
    equations: StructuredEquations,
    G: Sequence[np.ndarray | None],
    R: np.ndarray,
    args: argparse.Namespace,
) -> dict:
    engine = EngineChoice("structured" if args.threads > 1 else "serial", "level", args.threads).build(equations)
    engine.set_variances(list(G), R)
    random = [i for i, g in enumerate(G) if g is not None]
    sweeps, forms = [], []
    for n in range(1, args.sweeps + 2):  # the first compiles
        of_sweep: dict = {}
        _clocked(of_sweep, "sweep", partial(engine.sweep, n, (args.seed, 0)))
        _clocked(of_sweep, "form", lambda: [engine.quadratic_form(i) for i in random])
        sweeps.append(of_sweep["sweep"])
        forms.append(of_sweep["form"])
    return {
        "ms a sweep": 1e3 * statistics.median(sweeps[1:]),
        "ms of quadratic forms": 1e3 * statistics.median(forms[1:]),
    }
