"""The tfyard job file: what to train and with how many, on one page, written by hand."""

from .dump import dump
from .load import load, where
from .words import JobFile

__all__ = ["JobFile", "dump", "load", "where"]
