"""Reading and following the logs of a TFJob."""
