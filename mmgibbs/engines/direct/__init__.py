"""What the sparse factor of the coefficient matrix C gives: exact draws, solutions, posterior standard deviations."""
