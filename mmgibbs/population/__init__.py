"""Facts about a pedigree: completeness, inbreeding, effective size, founders, generation intervals."""
