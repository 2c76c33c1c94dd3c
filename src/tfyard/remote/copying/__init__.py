"""Copying files between this machine and a job."""
