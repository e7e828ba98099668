"""Two sets of solutions side by side: of two runs, or of a run and another program."""
