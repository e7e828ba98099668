"""The restricted likelihood of the variances: the location effects, flat fixed effects too, are integrated out."""
