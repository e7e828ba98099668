"""Effects of SNPs: the step that draws them, its kernels, and their priors."""
