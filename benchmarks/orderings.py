"""Fill of the factor by order of elimination: minimum degree beside nested dissection by level structures.

    PYTHONPATH=tests python -m benchmarks.orderings

Nested dissection (George 1973): a breadth-first search from an outlying equation puts the others on levels; the one in
the middle separates the two sides, which are cut again, down to `SMALLEST` equations, which minimum degree orders.
Equations that many others meet (an intercept, a sex) would make every graph two levels deep: they come last.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from helpers.explicit_matrix import sparse_matrix
from helpers.shared_cases import CASES, analysis
from helpers.support import ROOT
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.likelihood.cholesky.elimination import column_counts, eliminate, elimination_tree, permute
from mmgibbs.likelihood.cholesky.ordering import minimum_degree
from mmgibbs.likelihood.coefficients import coefficients
from mmgibbs.runs.bench.command import print_table

SMALLEST = 60
DENSE = 10  # times sqrt(n) neighbours, from which an equation comes last


def nested_dissection(pattern: csr_array) -> np.ndarray:
    degree = np.diff(pattern.indptr)
    dense = degree > DENSE * np.sqrt(pattern.shape[0])
    rest = np.flatnonzero(~dense)
    return np.concatenate([_dissected(csr_array(pattern[rest][:, rest]), rest), np.flatnonzero(dense)])


def _dissected(graph: csr_array, names: np.ndarray) -> np.ndarray:
    if graph.shape[0] <= SMALLEST:
        return names[minimum_degree(graph)]
    n, label = connected_components(graph, directed=False)
    if n > 1:
        groups = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
        return np.concatenate([_dissected(csr_array(graph[g][:, g]), names[g]) for g in groups])
    level = _levels(graph)
    middle = int(np.searchsorted(np.cumsum(np.bincount(level)), graph.shape[0] / 2))
    near, far, between = level < middle, level > middle, level == middle
    if not near.any() or not far.any():
        return names[minimum_degree(graph)]
    sides = [_dissected(csr_array(graph[s][:, s]), names[s]) for s in (near, far)]
    return np.concatenate([*sides, names[between]])


def _levels(graph: csr_array) -> np.ndarray:
    start = 0
    for _ in range(3):  # towards an outlying equation
        level = _from(graph, start)
        start = int(np.argmax(level))
    return level


def _from(graph: csr_array, start: int) -> np.ndarray:
    order, before = breadth_first_order(graph, start, directed=False)
    level = np.zeros(graph.shape[0], int)
    for i in order[1:]:
        level[i] = level[before[i]] + 1
    return level


def cost(pattern: csr_array, order: np.ndarray) -> tuple[int, float]:
    """Elements of L, millions of operations."""
    lists = permute(pattern, order)
    counts = column_counts(*lists, elimination_tree(*lists)).astype(float)
    return int(counts.sum()), float((counts**2).sum() / 1e6)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in [*CASES, "beef"]:
            asked = ROOT / "configs/beef.yaml" if name == "beef" else analysis(name, Path(folder))
            config = load_config(asked)
            model = assemble(config, prepare(config)).model
            of_terms = [None if c is None else c.blocks for c in model.covariances]
            known = coefficients(model.design, of_terms, [m.blocks for m in model.residual.matrices])
            G = [None if c is None else c.start for c in model.covariances]
            known.explicit.set_variances(G, model.residual.start)
            pattern = sparse_matrix(known.explicit)
            own, other = eliminate(pattern), cost(pattern, nested_dissection(pattern))
            rows.append(
                {
                    "equations": name,
                    "n": pattern.shape[0],
                    "minimum degree, elements": own.nonzeros,
                    "million operations": own.flops / 1e6,
                    "nested dissection, elements": other[0],
                    "its million operations": other[1],
                }
            )
    print_table(rows)


if __name__ == "__main__":
    main()
