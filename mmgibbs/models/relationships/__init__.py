"""Relationship matrices of random terms: one class for each kind, a file each (see base.py).

A new kind is a class with the operations of `base.Relationship` in a file of its own, a line in
config/relationships.py that names it and its keys, and a line in data/relationships.py that makes it from the tables.
"""
