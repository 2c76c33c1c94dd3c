"""Conversion of every published version of TFJob to a Job and back."""
