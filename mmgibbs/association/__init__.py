"""Tests of single SNPs in the mixed model of a finished run."""
