"""A first analysis file, from what the tables look like."""
