"""From an analysis and its data to the model that is solved: covariance matrices, priors, estimability, the engine."""
