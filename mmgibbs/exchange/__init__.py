"""Files of other programs: `mmgibbs import-blupf90` and `mmgibbs export`."""
