"""The tfyard job file, which people write by hand: the program, and the number of tasks of each role.

Its modules are imported by name (`jobfile.load`, `jobfile.dump`), so that reading does not import writing.
"""
