"""Measurements of a checkout: `python -m benchmarks KIND`, and scripts. Not part of the package."""
