"""The order in which equations are eliminated: approximate minimum degree (Amestoy, Davis & Duff 1996).

Elimination of p joins all its neighbours. They are not listed pair by pair: p becomes an *element*, a list of
variables, which absorbs the elements that p was in. The degree of a variable i of p is bounded by

    d_i = |variables of i outside p| + |p| - |i| + sum over the other elements e of i of |e outside p|

Variables with equal lists are merged; those without neighbours outside p are eliminated with p.
"""

from __future__ import annotations

import numpy as np
import scipy

from mmgibbs.pedigree.kernels import kernel

DENSE = 10.0  # times sqrt(n) neighbours, from which an equation (a sex, a large herd) is eliminated last
MIN_DENSE = 16.0  # neighbours


def minimum_degree(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """Order the equations for elimination, (n,) int64; pattern: symmetric, its values are not read.

    ValueError for a pattern that is not symmetric.
    """
    pattern, transposed = pattern.sorted_indices(), pattern.T.tocsr().sorted_indices()
    pattern.sum_duplicates()
    transposed.sum_duplicates()
    if not np.array_equal(pattern.indptr, transposed.indptr) or not np.array_equal(pattern.indices, transposed.indices):
        raise ValueError("expected a symmetric pattern")
    degree = np.diff(pattern.indptr)
    is_dense = degree > max(MIN_DENSE, DENSE * np.sqrt(degree.size))
    sparse, dense = np.flatnonzero(~is_dense), np.flatnonzero(is_dense)
    rest = pattern[sparse][:, sparse] if dense.size else pattern
    step = _eliminate_graph(rest.indptr.astype(np.int64), rest.indices.astype(np.int32, copy=False))
    return np.concatenate([sparse[np.argsort(step, kind="stable")], dense[np.argsort(degree[dense], kind="stable")]])


@kernel(error_model="python")
def _eliminate_graph(indptr, indices):
    """Find the step at which each equation is eliminated, (n,): the same for those that go together."""
    n = indptr.size - 1
    # The list of a variable has its elements, lists[first : first + elements], then variables, up to first + length.
    # The list of an element has its variables; length 0: absorbed.
    lists, first, end = np.empty(indices.size, np.int32), np.empty(n, np.int64), np.int64(0)
    for i in range(n):
        first[i] = end
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] != i:
                lists[end] = indices[e]
                end += 1
    length, elements = np.append(first[1:], np.array([end])) - first, np.zeros(n, np.int64)
    size = np.ones(n, np.int64)  # equations of a variable, negative in the new element; 0: eliminated, merged
    degree = length.copy()  # of a variable: at most; of an element: its equations
    step, goes_with = np.full(n, -1, np.int64), np.arange(n)
    mark, seen = np.int64(1), np.zeros(n, np.int64)
    head, after, before = np.full(n, -1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)  # variables by degree
    keys, bucket, next_in_bucket = np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n, np.int64)
    for i in range(n):
        _insert(head, after, before, degree[i], i)
    least, done = np.int64(0), np.int64(0)
    while done < n:
        while head[least] < 0:
            least += 1
        p = head[least]
        _remove(head, after, before, least, p)
        step[p] = done
        done += size[p]
        size[p] = 0
        # The new element: the variables of p and of its elements.
        needed = length[p]
        for e in lists[first[p] : first[p] + elements[p]]:
            needed += length[e]
        if end + needed > lists.size:
            grown = np.empty(2 * lists.size + needed, np.int32)
            grown[:end] = lists[:end]
            lists = grown
        start, joined = end, np.int64(0)
        for q in range(first[p], first[p] + elements[p] + 1):
            low, high = q, first[p] + length[p]
            if q < first[p] + elements[p]:
                e = lists[q]
                low, high = first[e], first[e] + length[e]
                length[e] = 0
            for i in lists[low:high]:
                if size[i] > 0:
                    _remove(head, after, before, degree[i], i)
                    joined += size[i]
                    size[i] = -size[i]
                    lists[end] = i
                    end += 1
        # seen[e] = mark + |e outside p|
        for i in lists[start:end]:
            for e in lists[first[i] : first[i] + elements[i]]:
                if seen[e] < mark:
                    seen[e] = mark + degree[e]
                seen[e] += size[i]
        # The lists of its variables, without what p now says, and a key of each list.
        for i in lists[start:end]:
            low, to, outside, key = first[i], first[i], np.int64(0), np.int64(0)
            for e in lists[low : low + elements[i]]:
                if length[e] > 0 and seen[e] > mark:
                    outside += seen[e] - mark
                    key += e
                    lists[to] = e
                    to += 1
            variables = to
            for j in lists[low + elements[i] : low + length[i]]:
                if size[j] > 0:
                    outside += size[j]
                    key += j
                    lists[to] = j
                    to += 1
            if outside == 0:
                goes_with[i] = p
                joined += size[i]
                done -= size[i]
                size[i] = 0
                continue
            lists[to] = lists[variables]  # there is room: p, or an element of p, was in the list
            lists[variables] = p
            elements[i], length[i], degree[i] = variables + 1 - low, to + 1 - low, min(degree[i], outside)
            keys[i] = key % n
            next_in_bucket[i], bucket[keys[i]] = bucket[keys[i]], i
        mark += n + 1
        # Variables with equal lists have equal keys.
        for i in lists[start:end]:
            if size[i] == 0:
                continue
            k = bucket[keys[i]]
            bucket[keys[i]] = -1
            while k >= 0:
                mark += 1
                for x in lists[first[k] : first[k] + length[k]]:
                    seen[x] = mark
                previous, j = k, next_in_bucket[k]
                while j >= 0:
                    is_equal = length[j] == length[k] and elements[j] == elements[k]
                    place = first[j]
                    while is_equal and place < first[j] + length[j]:
                        is_equal = seen[lists[place]] == mark
                        place += 1
                    if is_equal:
                        goes_with[j] = k
                        size[k] += size[j]
                        size[j] = 0
                        next_in_bucket[previous] = next_in_bucket[j]
                    else:
                        previous = j
                    j = next_in_bucket[j]
                k = next_in_bucket[k]
        mark += 1
        to = start
        for i in lists[start:end]:
            if size[i] != 0:
                size[i] = -size[i]
                degree[i] = min(degree[i] + joined, n - done) - size[i]
                _insert(head, after, before, degree[i], i)
                least = min(least, degree[i])
                lists[to] = i
                to += 1
        first[p], length[p], elements[p], degree[p], end = start, to - start, 0, joined, to
    for i in range(n):
        k = i
        while step[k] < 0:
            k = goes_with[k]
        step[i] = step[k]
    return step


@kernel
def _insert(head, after, before, degree, i):
    """Put variable i first among those of its degree."""
    after[i], before[i] = head[degree], -1
    if after[i] >= 0:
        before[after[i]] = i
    head[degree] = i


@kernel
def _remove(head, after, before, degree, i):
    """Take variable i from among those of its degree."""
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[degree] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
