"""Job -> the objects that a cluster accepts. Pure: contents in, manifests out.

Nothing here reads a clock, the environment, a file of the user or the network, and nothing is random: the same
job gives the same bytes. The command line reads files and passes their contents.
"""

from .objects import RenderedObject, to_yaml
from .options import CodeFile, RenderOptions, SecretFile

__all__ = ["FORMS", "CodeFile", "RenderOptions", "RenderedObject", "SecretFile", "to_yaml"]

FORMS = ("tfjob", "plain", "legacy")
"""Values of `--as`: names of the modules that render a whole job."""
