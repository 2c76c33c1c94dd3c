"""A run on this machine as an application: prepare, run, record, list. The twin of `remote`."""
