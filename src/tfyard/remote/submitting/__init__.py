"""Submitting a job to a cluster: its checks, its code, its objects."""
