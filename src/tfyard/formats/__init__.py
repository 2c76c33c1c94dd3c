"""What users write: every wire format, to and from the one Job. Pure: text in, values out.

Each version's own defaults stand in its own file. Problems come all at once, each with its field path, and
from a file also with line and column.
"""

from .loading import Checked, check, is_job, load, split
from .problem_text import format_problem
from .tfjob.status import dump_status, load_status
from .writing import Dumped, Version, dump, to_yaml
from .yaml.source import Document, read, split_lines

__all__ = [
    "Checked",
    "Document",
    "Dumped",
    "Version",
    "check",
    "dump",
    "dump_status",
    "format_problem",
    "is_job",
    "load",
    "load_status",
    "read",
    "split",
    "split_lines",
    "to_yaml",
]
