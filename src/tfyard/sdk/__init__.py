"""The Python interface: the commands of the terminal as functions, with the same words and errors.

`tfyard/__init__.py` names what is public. `job.py` has `Job`, `run.py` has `Run`; runs on this machine are in
`on_machine.py`, jobs on a cluster in `on_cluster.py`.
"""
