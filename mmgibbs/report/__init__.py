"""Tables, plots and the report page of a run: `mmgibbs report`."""
