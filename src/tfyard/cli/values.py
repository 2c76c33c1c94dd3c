"""Values for templates: `--values file` first, `--set k=v` on top."""

from collections.abc import Sequence
from typing import Any

from tfyard import formats
from tfyard.cli import files
from tfyard.errors import Usage


def read(names: Sequence[str], sets: Sequence[str]) -> dict[str, Any]:
    """Every wrong `--set` is told, not only the first."""
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
    """`3` and `true` mean a number and a truth to a template; everything else is text as it stands."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() and len(text) < 10 and str(int(text)) == text else text


def check_manifests(text: str, name: str) -> None:
    """What a template wrote must be YAML, else a cluster would be the first to complain."""
    formats.read(text, name)
