"""Job -> the objects that a cluster accepts. Pure: contents in, manifests out.

Nothing here reads a clock, the environment, a file of the user or the network, and nothing is random: the same
job gives the same bytes. The command line reads files and passes their contents.
"""

from importlib import import_module

from tfyard.model import Job

from .objects import RenderedObject, to_yaml
from .options import CodeFile, RenderOptions, SecretFile

__all__ = [
    "FORMS",
    "CodeFile",
    "RenderOptions",
    "RenderedObject",
    "SecretFile",
    "render",
    "to_yaml",
    "unsupported",
]

FORMS = ("tfjob", "plain", "legacy")
"""Values of `--as`: names of the modules that render a whole job."""


def render(form: str, job: Job, options: RenderOptions) -> list[RenderedObject]:
    """The objects of a whole job. Only the module of the form is imported."""
    objects: list[RenderedObject] = getattr(import_module(f"{__name__}.{form}"), form)(job, options)
    return objects


def unsupported(form: str, job: Job) -> list[str]:
    """Messages about settings of the job that this form does not support."""
    messages: list[str] = import_module(f"{__name__}.{form}").unsupported(job)
    return messages
