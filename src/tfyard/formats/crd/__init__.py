"""The CustomResourceDefinitions of TFJob, generated from the declarations of `formats`.

They replace an admission webhook (rules), a conversion webhook (every version lists the fields of all) and a
defaulting one (schema defaults). They are data; installing them is done elsewhere.
"""

from .documents import crds, served_by
from .status import missing_memory

__all__ = ["crds", "missing_memory", "served_by"]
