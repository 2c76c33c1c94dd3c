"""The operator: keeps the TFJobs of a cluster going. `process.py` starts it, `operator.py` puts its parts
together."""
