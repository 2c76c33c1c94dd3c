"""kubeflow.org/v1beta1, the version of the Kubeflow labs. It had no deadline and no backoff limit yet;
both are accepted all the same."""

from tfyard.formats.declarations.reading import Notes
from tfyard.model import Job, Manifest

from . import fields

DEFAULTS = fields.Defaults(api_version="kubeflow.org/v1beta1", clean="Running", dialect="tf1")
where = fields.where


def load(document: Manifest, notes: Notes) -> Job | None:
    return fields.load(document, DEFAULTS, notes)
