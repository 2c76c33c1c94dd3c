"""Values for templates: `--values file` first, `--set k=v` on top."""

import re
from collections.abc import Sequence
from typing import Any

from tfyard import formats
from tfyard.cli import files
from tfyard.errors import Invalid, Usage
from tfyard.formats.yaml.source import locate
from tfyard.model import Problem
from tfyard.model.names import MAX_LABEL

MAX_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
# Their names become label values or host names.
_LABELS = frozenset({"Job", "Service", "StatefulSet", "Namespace"})


def read(names: Sequence[str], sets: Sequence[str]) -> dict[str, Any]:
    """Every wrong `--set` is reported, not only the first."""
    found: dict[str, Any] = {}
    for name in names:
        for document in files.read_documents(name):
            if not isinstance(document.data, dict):
                raise Usage(f"--values {name}: must be a mapping of names to values")
            found |= document.data
    wrong = [words for words in sets if not words.partition("=")[0].isidentifier() or "=" not in words]
    if wrong:
        raise Usage(f"--set {', '.join(wrong)}: must be NAME=VALUE, as in --set image=tensorflow:2.21.0")
    return found | {name: _value(text) for name, _, text in (words.partition("=") for words in sets)}


def _value(text: str) -> Any:
    """`3` is a number and `true` a boolean; everything else is text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() and len(text) < 10 and str(int(text)) == text else text


def check_manifests(text: str, name: str) -> None:
    """A rendered template must be YAML with names that a cluster accepts."""
    problems = [
        problem
        for document in formats.read(text, name)
        for problem in locate(_names(document.data), document)
    ]
    if problems:
        raise Invalid(problems)


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
