"""A cluster as a backend: what is there is watched, what was decided is written."""
