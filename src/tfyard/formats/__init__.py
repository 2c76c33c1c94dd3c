"""The formats that users write: each is converted to a Job and back. Pure: text in, values out.

All problems are reported at once, each with its field path, and for a file also with line and column.
"""

from .loading import Checked, check, is_config, is_job, is_job_file, is_sweep, load, split
from .writing import Dumped, Version, dump, to_yaml
from .yaml.source import Document, locate, read, split_lines

__all__ = [
    "Checked",
    "Document",
    "Dumped",
    "Version",
    "check",
    "dump",
    "is_config",
    "is_job",
    "is_job_file",
    "is_sweep",
    "load",
    "locate",
    "read",
    "split",
    "split_lines",
    "to_yaml",
]
