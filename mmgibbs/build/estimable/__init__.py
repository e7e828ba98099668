"""Which variances the records determine, and whether a posterior of them exists."""
