"""The operator, which reconciles the TFJobs of a cluster. `process.py` starts it, `operator.py` puts its parts
together."""
