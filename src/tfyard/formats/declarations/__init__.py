"""Declared Structs, walked: reading, problems, explanations. One declaration serves them all."""
