"""The workshop's config (`imports`, `resources`) as manifests for today's clusters."""

from .config import Template, load
from .objects import render
from .words import Config

__all__ = ["Config", "Template", "load", "render"]
