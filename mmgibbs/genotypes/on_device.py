"""X'X of genotypes, and the inverse of such a matrix, on a device (cuBLAS and cuSOLVER through CuPy), in double.

Genotypes go there some SNPs at a time. Products of whole numbers in eight bits would be exact too, but only for one
scale of all SNPs and without missing genotypes; in double one way serves all methods.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mmgibbs.machine.device import Device, refuse_beyond_device

SNPS_AT_ONCE = 4096
MATRICES = 4  # of the size of the result, that an inverse takes
REMEDY = "use device: cpu"


class Coded(Protocol):
    """Genotypes that a matrix is made of (relationship.Additive, Dominance)."""

    def double(self, rows: np.ndarray) -> np.ndarray: ...


class DeviceMatrices:
    """Makes and inverts relationship matrices on a device; DeviceError with the bytes where they do not fit there."""

    def __init__(self, device: Device | None = None):
        self.device = Device() if device is None else device

    def multiply(self, coded: Coded, rows: np.ndarray, n: int) -> np.ndarray:
        """X'X (n, n) over these SNPs."""
        xp, needed = self.device.cupy, 8 * (2 * n * n + n * min(SNPS_AT_ONCE, len(rows)))
        what = f"the relationships of {n:,} genotyped animals"
        refuse_beyond_device(needed, self.device.free_bytes(), what, REMEDY)
        total = xp.zeros((n, n))
        for first in range(0, len(rows), SNPS_AT_ONCE):
            x = xp.asarray(coded.double(rows[first : first + SNPS_AT_ONCE]))
            total += x.T @ x
        return self.device.fetch(total)

    def invert(self, K: np.ndarray) -> np.ndarray:
        """K^-1 (n, n), symmetric; LinAlgError where K is not positive definite."""
        xp, n = self.device.cupy, len(K)
        what = f"the inverse of the relationships of {n:,} genotyped animals"
        refuse_beyond_device(8 * MATRICES * n * n, self.device.free_bytes(), what, REMEDY)
        factor = self.device.cholesky(xp.asarray(K))
        root = self.device.solve_triangular(factor, xp.eye(n), False)
        return self.device.fetch(root.T @ root)


def device_matrices(device: str) -> DeviceMatrices | None:
    """Return the matrices of `sampler.device`; None for the CPU."""
    return DeviceMatrices() if device == "gpu" else None
