"""Fills templates and checks the result, which must be YAML with names that a cluster accepts."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tfyard import formats
from tfyard.cli import files, problems, template_process
from tfyard.cli.template_process import TemplateRequest
from tfyard.errors import Invalid, Usage
from tfyard.formats.yaml.source import locate, split_lines
from tfyard.model import Manifest, Problem
from tfyard.model.names import MAX_LABEL
from tfyard.render import api_versions

MAX_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
# Kinds whose names become label values or host names.
_LABELS = frozenset({"Job", "Service", "StatefulSet", "Namespace"})


class Manifests(Struct, frozen=True):
    text: str
    manifests: list[Manifest]


def fill(
    template: str,
    values: dict[str, Any],
    *,
    sets: Sequence[str] = (),
    shared: Sequence[str] = (),
    lenient: bool = False,
) -> Manifests:
    """Render a template and check the text. Problems name lines of the template or of the text."""
    shown, text = files.display_name(template), _source(template)
    request = TemplateRequest(source=text, values=values, sets=[*sets], shared=[*shared], lenient=lenient)
    source = split_lines(text)
    try:
        text, warnings = template_process.fill(request)
    except Invalid as error:
        problems.report(error.problems, source, shown)
        raise Invalid(()) from None
    problems.report(warnings, source, shown)
    try:
        manifests, warnings = _read_manifests(text, shown)
    except Invalid as error:
        problems.report(error.problems, split_lines(text), f"{shown} (rendered)")
        raise Invalid(()) from None
    problems.report(warnings, split_lines(text), f"{shown} (rendered)")
    return Manifests(text, manifests)


def _source(template: str) -> str:
    try:
        return files.read_bytes(template).decode("utf-8")
    except UnicodeDecodeError:
        raise Usage(f"{files.display_name(template)} is not UTF-8 text") from None


def _read_manifests(text: str, name: str) -> tuple[list[Manifest], list[Problem]]:
    """The manifests of a rendered template and warnings: one for all objects with the same old version."""
    documents = formats.read(text, name)
    wrong = [problem for document in documents for problem in locate(_names(document.data), document)]
    if wrong:
        raise Invalid(wrong)
    mappings = [document for document in documents if isinstance(document.data, dict)]
    old = [
        warning
        for document in mappings
        for warning in locate([*api_versions.warnings(document.data)], document)
    ]
    return [document.data for document in mappings], list(
        {warning.message: warning for warning in reversed(old)}.values()
    )[::-1]


def _names(data: Any) -> list[Problem]:
    metadata = data.get("metadata") if isinstance(data, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is None or "kind" not in data:
        return []
    longest = MAX_LABEL if data["kind"] in _LABELS else MAX_NAME
    if isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= longest:
        return []
    text = f"must be lower-case letters, digits and '-', at most {longest}"
    return [Problem(("metadata", "name"), text, "change the project or the template's head", name)]
