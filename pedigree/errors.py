"""Errors of tables and pedigrees. Each message says what is wrong, where (file, row, column), found and needed."""


class TableError(ValueError):
    """A table that cannot be read: missing, empty, not text, rows of unequal length, a column that does not exist."""


class PedigreeError(ValueError):
    """An impossible pedigree: an animal twice, a loop, a sire that is a dam, a parent younger than its calf."""


class UnknownColumns(PedigreeError):
    """A table with column names among which id, sire and dam are not recognised; the caller may name them."""
