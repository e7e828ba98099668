"""Tables -> `Design`: reading, joining, coding of levels, covariates, rank.

    prepare.prepare(analysis) -> Prepared(design, pedigree, levels, counts, ...)

Polars lives here; the solver core sees NumPy arrays only.
"""
