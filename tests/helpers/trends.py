"""Effects of a relationship whose parameters change, as a step of the sampler sees them, and its matrices in plain
form."""

import numpy as np


class Trend:
    """An engine of theta ~ MN(0, K(rho) (x) G) alone."""

    def __init__(self, theta, relationship):
        self.theta, self.relationship = theta, relationship
        indptr, indices, _ = relationship.inverse_csr()
        row = np.repeat(np.arange(len(theta)), np.diff(indptr))
        products = theta[row][:, :, None] * theta[indices][:, None, :]
        self.sums = np.tensordot(relationship.fixed_matrices.toarray().T, products, axes=1)
        self.relationship_parameters = self

    def renew(self, term, rho):
        self.rho = rho

    def sum_products(self, term):
        return self.sums

    def quadratic_form(self, term):
        return np.einsum("m,mab->ab", self.relationship.weigh(self.rho).values, self.sums)


def lag_matrix(rho, positions):
    """rho^|i - j|; of a negative rho positions are whole numbers."""
    distance = np.abs(np.subtract.outer(positions, positions))
    return np.where((rho < 0) & (np.round(distance) % 2 == 1), -1.0, 1.0) * np.abs(rho) ** distance
