"""Variances with the location effects integrated out: restricted maximum likelihood."""
