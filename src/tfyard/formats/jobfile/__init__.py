"""The tfyard job file: what to train and with how many tasks, on one page, written by hand.

Its modules are imported by name (`jobfile.load`, `jobfile.dump`), so that reading does not import writing.
"""
