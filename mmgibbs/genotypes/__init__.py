"""Genotypes of chosen animals, stored so that sums over the animals of one SNP are fast. See `store`.

Part of the solver core: NumPy and Numba only. Files of genotypes are read by the package `data`.
"""
