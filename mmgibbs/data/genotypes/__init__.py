"""Files of genotypes: readers, one for each format, and what is made of them for an analysis."""
