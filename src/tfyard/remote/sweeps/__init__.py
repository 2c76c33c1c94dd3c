"""Sweeps of a cluster: one ConfigMap has the state, the trials are TFJobs that it owns.

store.py      the ConfigMap             saving.py      what its driver writes into it
trials.py     the TFJobs of the trials, and the metrics in their logs
driving.py    a driver's whole life     driver_job.py  the Job that drives a sweep that no command follows
driver_state.py  what keeps that Job from driving
submission.py how a sweep gets there    __main__.py    what that Job runs
"""
