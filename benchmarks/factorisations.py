"""Milliseconds of a numeric factorisation on a known pattern, of C^-1 on it, and of qdldl, in turns, one core.

    PYTHONPATH=tests python -m benchmarks.factorisations [--rounds 7]        (pip install qdldl for its column)

C of the cases of helpers/shared_cases.py and of configs/beef.yaml at the starting variances, with correlations of a
tenth; by columns and by supernodes, whichever the program would take; the best of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from helpers.explicit_matrix import sparse_matrix
from helpers.shared_cases import CASES, analysis
from helpers.support import ROOT
from scipy.sparse import csc_array, csc_matrix, csr_array, triu

from mmgibbs.build.assemble import assemble
from mmgibbs.config import load_config
from mmgibbs.data.prepare import prepare
from mmgibbs.likelihood.cholesky.columns import analyse_columns
from mmgibbs.likelihood.cholesky.elimination import eliminate
from mmgibbs.likelihood.cholesky.factor import Factor, analyse
from mmgibbs.likelihood.cholesky.supernodes import analyse_supernodes
from mmgibbs.likelihood.coefficients import coefficients
from mmgibbs.models.covariance import CovarianceModel
from mmgibbs.runs.bench.command import print_table


def equations(name: str, folder: Path) -> csr_array:
    asked = ROOT / "configs/beef.yaml" if name == "beef" else analysis(name, folder)
    config = load_config(asked)
    model = assemble(config, prepare(config)).model
    of_terms = [None if c is None else c.blocks for c in model.covariances]
    known = coefficients(model.design, of_terms, [m.blocks for m in model.residual.matrices])
    G = [None if c is None else correlated(c) for c in model.covariances]
    known.explicit.set_variances(G, np.array([correlated(m) for m in model.residual.matrices]))
    return sparse_matrix(known.explicit)


def correlated(c: CovarianceModel) -> np.ndarray:
    """Its start, with correlations of a tenth where it may have some: none may be missing from the pattern."""
    sd, out = np.sqrt(np.diag(c.start)), np.diag(np.diag(c.start)).astype(float)
    for block in c.blocks:
        among = np.ix_(block, block)
        out[among] += 0.1 * np.outer(sd[list(block)], sd[list(block)]) * (1 - np.eye(len(block)))
    return out


def ours(kind: Callable, C: csr_array) -> tuple[int, Callable[[], None], Callable[[], object]]:
    """Elements; a factorisation; C^-1 on the pattern."""
    known = kind(eliminate(C))
    values = np.zeros(known.elements)
    values[known.locate(np.repeat(np.arange(C.shape[0]), np.diff(C.indptr)), C.indices)] = C.data
    factor = Factor(known, values.copy())
    assert known.factorise(factor.values) == -1

    def again() -> None:
        known.factorise(values.copy())

    return known.elements, again, factor.selected_inverse


def of_qdldl(C: csr_array) -> Callable[[], None] | None:
    try:
        import qdldl
    except ImportError:
        return None
    upper = csc_matrix(triu(csc_array(C), format="csc"))
    solver = qdldl.Solver(upper, upper=True)
    return lambda: solver.update(upper, upper=True)


def milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in [*CASES, "beef"]:
            C = equations(name, Path(folder))
            elements, columns, inverse = ours(analyse_columns, C)
            _, supernodes, of_supernodes = ours(analyse_supernodes, C)
            calls = {
                "columns": columns,
                "C^-1 of columns": inverse,
                "supernodes": supernodes,
                "C^-1 of supernodes": of_supernodes,
                "qdldl": of_qdldl(C),
            }
            best = {one: np.inf for one, call in calls.items() if call is not None}
            for _ in range(args.rounds):
                best = {one: min(least, milliseconds(calls[one])) for one, least in best.items()}
            taken = "columns" if analyse(C).__class__.__name__ == "Columns" else "supernodes"
            rows.append({"case": name, "equations": C.shape[0], "elements of L": elements} | best | {"taken": taken})
            print(rows[-1], flush=True)
    print_table(rows)


if __name__ == "__main__":
    main()
