"""YAML as the loader inside kubectl reads it, with the position of every value."""
