"""What users write: every format <-> the one Job. Pure: text in, values out.

All problems are reported at once, each with its field path, and for a file also with line and column.
"""

from .loading import Checked, check, is_config, is_job, load, split
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
    "is_config",
    "is_job",
    "load",
    "load_status",
    "read",
    "split",
    "split_lines",
    "to_yaml",
]
