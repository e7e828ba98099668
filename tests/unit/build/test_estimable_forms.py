"""What random contrasts say of every kind of model is what dense algebra says: the rank of M V_i M, and of M Z."""

from dataclasses import replace

import numpy as np
import pytest
from reference import dense, models

from mmgibbs.build.estimable import contrasts as of_contrasts
from mmgibbs.build.estimable.contrasts import draw_contrasts
from mmgibbs.build.estimable.forms import compute_forms
from mmgibbs.build.estimable.matrices import list_estimated_blocks
from mmgibbs.build.estimable.variances import find_undetermined
from mmgibbs.models.covariance import CovarianceModel, full_block
from mmgibbs.models.residual import ResidualModel


def problem(name, is_doubled=False):
    """(design, blocks) of a model all of whose matrices are estimated; is_doubled: with its last term twice."""
    example = models.example(name)
    design = replace(example.design, responses=())  # as if liabilities were seen
    if is_doubled:
        design = replace(design, terms=(*design.terms, design.terms[-1]))
        example = replace(example, G=[*example.G, example.G[-1]])
    G = [None if g is None else CovarianceModel(g, False, full_block(len(g))) for g in example.G]
    classes = max(1, len(design.residual_classes))
    R = np.broadcast_to(example.R, (classes, *example.R.shape[-2:]))
    matrices = tuple(CovarianceModel(r, False, full_block(len(r))) for r in R)
    return design, list_estimated_blocks(design, G, ResidualModel(matrices, design.residual_classes))


def dense_matrices(design, blocks):
    """(X (N, f), {element: V_i (N, N)}) of the observations of all traits, by loops."""
    observed = design.patterns[design.pattern]
    rows = np.argwhere(observed)  # (record, trait)
    flat, out = [np.zeros((len(rows), 0))], {}
    W = [dense.incidence(term, design.n_traits)[rows[:, 0], rows[:, 1]] for term in design.terms]
    K = []
    for term, w in zip(design.terms, W, strict=True):
        k, n = term.n_components, term.n_without_fixed_groups
        active = np.ones((term.n_levels, k), bool) if term.active is None else term.active
        if term.kind == "fixed":
            free = np.ones(k, bool) if term.prior_precision is None else np.diag(term.prior_precision) == 0
            flat.append(w[:, (active & free).ravel()])
            K.append(None)
            continue
        inverse = dense.relationship_inverse(term)
        held = np.flatnonzero(active[:n].any(axis=1))
        matrix = np.zeros((term.n_levels, term.n_levels))
        matrix[np.ix_(held, held)] = np.linalg.inv(inverse[np.ix_(held, held)])
        if n < term.n_levels:  # given their groups animals are Q g, whose covariance is not in K
            Q = np.vstack([-matrix[:n, :n] @ inverse[:n, n:], np.eye(term.n_levels - n)])
            columns = np.einsum("rlc,lg->rgc", w.reshape(len(rows), -1, k), Q)
            flat.append(columns[:, active[n:]])
        K.append(matrix)
    for number, block in enumerate(blocks):
        for i in range(block.size):
            for j in range(i + 1):
                V = np.zeros((len(rows), len(rows)))
                if block.term is None:
                    same = (rows[:, :1] == rows[:, 0]) & np.equal.outer(
                        design.class_of_pattern[design.pattern[rows[:, 0]]], np.full(len(rows), block.residual_class)
                    )
                    t, u = block.traits[i], block.traits[j]
                    pair = np.outer(rows[:, 1] == t, rows[:, 1] == u)
                    V += same * (pair | pair.T) / design.weight[rows[:, 0]]
                else:
                    k = design.terms[block.term].n_components
                    w = W[block.term].reshape(len(rows), -1, k)
                    a, b = (w[:, :, block.components[p]] for p in (i, j))
                    V += a @ K[block.term] @ b.T
                    V = V if i == j else V + V.T
                out[number, i, j] = V
    return np.hstack(flat), out


def example_elements(design):
    """Of the matrix of the last term."""
    k = design.terms[-1].n_components
    return [(i, j) for i in range(k) for j in range(i + 1)]


def projected(X, V):
    values, vectors = np.linalg.eigh(X @ X.T)
    null = vectors[:, values <= 1e-9 * max(values[-1], 1.0)]
    return {element: null.T @ v @ null for element, v in V.items()}


def forms_of(design, blocks, m=24):
    return compute_forms(design, blocks, draw_contrasts(design, np.arange(design.n_records), m))


@pytest.mark.parametrize("is_doubled", [False, True])
@pytest.mark.parametrize("name", models.NAMES)
def test_elements_that_are_not_determined(name, is_doubled):
    """Those of which the null space of the vec(M V_i M) has a part; each of a term that is there twice."""
    design, blocks = problem(name, is_doubled)
    X, V = dense_matrices(design, blocks)
    inside = projected(X, V)
    scale = {e: max(np.abs(v).max(), 1e-12) for e, v in V.items()}
    columns = np.column_stack([(inside[e] / scale[e]).ravel() for e in V])
    _, values, directions = np.linalg.svd(columns)
    null = directions[np.count_nonzero(values > 1e-8 * values[0]) :]
    elements = list(V)
    expected = {elements[i] for i in np.flatnonzero((null**2).sum(axis=0) > 1e-10)}
    found = find_undetermined(forms_of(design, blocks), blocks)
    assert {tuple(e) for elements in found for e in elements} == expected
    if is_doubled:
        assert len(expected) >= 2 * len(example_elements(design))


@pytest.mark.parametrize("name", models.NAMES)
def test_ranks_are_numbers_of_contrasts(name):
    """The rank of the form of a variance is that of M V M, up to the number of contrasts drawn."""
    design, blocks = problem(name)
    inside = projected(*dense_matrices(design, blocks))
    for form in (f for of_traits in forms_of(design, blocks).of_traits.values() for f in of_traits):
        if form.element.row == form.element.column:
            rank = np.linalg.matrix_rank(inside[tuple(form.element)], tol=1e-8)
            assert np.linalg.matrix_rank(form.matrix, tol=1e-9) == min(rank, 24)


@pytest.mark.parametrize("name", models.LISTED)
def test_least_squares_give_the_contrasts_of_a_basis(name, monkeypatch):
    design, _ = problem(name)
    every = np.arange(design.n_records)
    by_basis = draw_contrasts(design, every, 4)
    monkeypatch.setattr(of_contrasts, "MAX_DENSE", 0)
    for found, expected in zip(draw_contrasts(design, every, 4), by_basis, strict=True):
        np.testing.assert_allclose(found.g, expected.g, atol=1e-8)
    monkeypatch.setattr(of_contrasts, "MAX_ELEMENTS", 0)
    assert draw_contrasts(design, every, 4) is None or not any(
        of_contrasts.build_flat_columns(design, t, every).shape[1] for t in range(design.n_traits)
    )
