"""Sparse Cholesky factors of symmetric positive definite matrices: order, analyse, factorise, solve, log-determinant
and selected inverse.

It knows nothing of models: matrices are SciPy's, and many matrices of one pattern are factorised after one analysis.
"""
