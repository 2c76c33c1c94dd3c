"""A cluster as a backend: watches the objects that exist, and writes what was decided."""
