"""REML by Monte Carlo, for models whose equations are too many for a factor."""
