"""Which (co)variances the records determine in combination alone, or not at all.

With normal records y ~ N(X b, sum_i psi_i V_i) the likelihood of error contrasts depends on psi through M V M alone, M
the projection that takes out X. It is linear in psi, so that psi is determined exactly where the matrices M V_i M are
linearly independent: where the expected information, tr(M V_i M V_j) / 2 at V = I, is regular (Searle, Casella &
McCulloch 1992, chapter 11; MINQUE of Rao 1971 has the same condition). A combination d with sum_i d_i M V_i M = 0 can
be added to psi without any change of the likelihood.

Random contrasts G show that: sum_i d_i G'V_i G = 0 for all d of that kind, and with probability 1 for no other, if the
forms have as many elements as there are matrices. Traits with liabilities have no scale of their own, so that their
residual variance, 1 by convention, counts as one more (matrices.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mmgibbs.build.estimable.forms import Element, Form, Forms
from mmgibbs.build.estimable.matrices import Block

NOTHING = 1e-9  # size of a form, in units of its own variance, up to which the records say nothing of it
DEPENDENT = 1e-6  # singular value of forms of length 1, up to which they depend on each other
INVOLVED = 1e-6  # elements of the projection on directions that are not determined


def find_undetermined(forms: Forms, blocks: Sequence[Block]) -> list[tuple[Element, ...]]:
    """Elements that are determined together alone, as a sum or another combination; or one that is not at all."""
    out: list[tuple[Element, ...]] = []
    for of_traits in forms.of_traits.values():
        dependent = _find_dependent(of_traits)
        out += [elements for elements in dependent if any(_is_free(e, blocks) for e in elements)]
    return out


def _is_free(element: Element, blocks: Sequence[Block]) -> bool:
    return not (element.row == element.column and element.row in blocks[element.block].unit)


def _find_dependent(forms: Sequence[Form]) -> list[tuple[Element, ...]]:
    elements = [form.element for form in forms]
    columns = np.column_stack([form.matrix.ravel() for form in forms])
    lengths = np.linalg.norm(columns, axis=0)
    known = lengths > NOTHING
    out: list[tuple[Element, ...]] = [(e,) for e, is_known in zip(elements, known, strict=True) if not is_known]
    kept = np.flatnonzero(known)
    if kept.size < 2:
        return out
    _, values, directions = np.linalg.svd(columns[:, kept] / lengths[kept], full_matrices=False)
    rank = int(np.count_nonzero(values > DEPENDENT))
    null = directions[rank:]
    joined = csr_array(np.abs(null.T @ null) > INVOLVED)
    involved = joined.diagonal()
    label = connected_components(joined, directed=False)[1]
    for component in np.unique(label[involved]):
        out.append(tuple(elements[kept[i]] for i in np.flatnonzero(label == component)))
    return out
