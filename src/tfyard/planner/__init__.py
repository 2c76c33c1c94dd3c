"""Decides what should happen: one pure function from a job and the world to a Decision.

The laptop and the cluster share it, which is why the same file means the same thing in both. It never
reads a clock, a file, an environment variable or the network: time is an argument, and so is the site.
"""

from .decide import decide, is_ignored, may_restart_in_place, status_unreadable
from .narrate import narrate, tell_end
from .site import Accelerator, Gang, Site

__all__ = [
    "Accelerator",
    "Gang",
    "Site",
    "decide",
    "is_ignored",
    "may_restart_in_place",
    "narrate",
    "status_unreadable",
    "tell_end",
]
