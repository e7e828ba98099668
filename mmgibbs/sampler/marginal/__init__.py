"""Variances drawn with the location effects integrated out, and the effects given them."""
