"""A page on this machine for the analyses of a folder: it drafts, checks and runs them by the commands."""
