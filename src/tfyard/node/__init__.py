"""This machine as a node: pods as processes, with directories for volumes and files for logs.

Imports nothing, because the supervisor of every run starts through here and has to be there at once.
"""
