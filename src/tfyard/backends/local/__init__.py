"""This machine as a backend: a job's tasks as pods of a node, and the directory that keeps the run."""
