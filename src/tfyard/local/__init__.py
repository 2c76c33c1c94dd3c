"""A run on this machine as an application: prepare, run, record, list. `remote` does the same for a cluster.

`prepare.prepare` checks a request, `run.Run` executes it, `runs` finds past ones; nothing here knows a terminal.
"""
