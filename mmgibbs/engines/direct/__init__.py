"""The coefficient matrix C by a sparse Cholesky factor: solutions, log|C|, and C^-1 where C may be other than 0."""
