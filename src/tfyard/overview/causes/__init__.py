"""Causes for which a job waits or has failed, a file per family. All are found in the evidence."""
