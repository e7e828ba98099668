"""Validation of evaluations: k-fold cross-validation and the LR method. `mmgibbs validate`."""
