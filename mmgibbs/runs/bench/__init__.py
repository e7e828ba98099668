"""Measured figures of this machine: `mmgibbs bench`."""
