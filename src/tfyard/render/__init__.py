"""How manifests look: a Job as the objects that a cluster takes. Pure: contents in, manifests out.

Nothing here reads a clock, an environment, a file of the user's or the network, and nothing is random: the
same job gives the same bytes, today and in a year. The command line reads files and passes contents in.
"""

from .manifests import Piece, text
from .options import CodeFile, SecretFile, Setting

__all__ = ["CodeFile", "Piece", "SecretFile", "Setting", "text"]
