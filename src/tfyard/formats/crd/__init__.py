"""TFJob as a cluster learns it: the CustomResourceDefinitions, generated from what `formats` declares.

They replace an admission webhook (rules), a conversion webhook (every version lists the fields of all) and a
defaulting one (schema defaults). They are data; who installs them is somebody else's choice.
"""

from .documents import crds
from .status import missing_memory

__all__ = ["crds", "missing_memory"]
