"""The Python interface: what the terminal does, by the same words and with the same errors.

`tfyard/__init__.py` names what is public. Here is one file for each thing: `job.Job`, `run.Run`, and the two
places where a run can be, `on_machine.py` and `on_cluster.py`.
"""
