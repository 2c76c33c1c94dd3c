"""YAML as kubectl reads it, with the position of every value."""
