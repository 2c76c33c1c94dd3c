"""A config with `resources` (and Jinja `imports`), a format of 2016, as manifests for today's clusters."""

from .load import TemplateResource, load
from .objects import jupyter_namespaces, render, replaced_images

__all__ = ["TemplateResource", "jupyter_namespaces", "load", "render", "replaced_images"]
