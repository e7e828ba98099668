"""Optimum contributions and matings: who has how many progeny, at a limit of coancestry."""
