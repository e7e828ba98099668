"""What is sampled, as plain data: design, terms, covariance matrices."""
