"""The tfyard job file: what to train and with how many, on one page, written by hand.

Its parts are imported by name (`jobfile.load`, `jobfile.dump`): whoever reads a file need not be able to write.
"""
