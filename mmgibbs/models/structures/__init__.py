"""Structured covariance matrices: G as a function of fewer parameters than it has elements."""
