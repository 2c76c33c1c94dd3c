"""YAML as the loader inside kubectl reads it, with the place of every value."""
