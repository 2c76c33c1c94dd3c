"""The sweep file: one job with many values.

words.py     the declaration of its words      load.py     words -> SweepSpec, every problem at once, and back
filling.py   a job with the values of a trial     fitting.py  whether a job can be the job of a sweep
"""

from .load import SweepDocument, check, load, over_words, words

__all__ = ["SweepDocument", "check", "load", "over_words", "words"]
