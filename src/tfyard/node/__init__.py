"""This machine as a node: pods as processes, with directories for volumes and files for logs.

Imports nothing, because the supervisor is started through this package and must start fast.
"""

SCRATCH = "scratch"
"""The directory, in that of a run, for what does not outlive it: temporary space, Secrets as files."""
WORK = "work"
"""The directory, in that of a run, with one for each container that does not say where it works."""
