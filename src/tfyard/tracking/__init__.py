"""Reports jobs to an MLflow server, by a process beside that nothing waits for.

`tracker.py` is our end of that process, `reporter.py` its program, `client.py` speaks to the server, and
`payloads.py` and `metrics.py` (pure) say what it is sent. Metrics pass through a file, so a server that is slow or
gone delays no training.
"""
