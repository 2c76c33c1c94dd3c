"""The fields of a TFJob's metadata that a Job needs."""

import re
from typing import Any

from msgspec import Struct

from tfyard.model import Manifest

from .declarations.reading import Notes
from .pods import checks

RULE = "must be lower-case letters, digits and '-', begin with a letter and not end with '-'"
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


class Metadata(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    def fields(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__struct_fields__}


def load(document: Manifest, notes: Notes) -> Metadata:
    """The metadata, as far as it is valid, so that problems of the spec are reported, too."""
    raw = document.get("metadata")
    if raw is None:
        notes.error(("metadata",), "must be given", "metadata: {name: my-job}")
        return Metadata(name="")
    notes.extend(checks.unknown_fields(raw, ("metadata",), "ObjectMeta"))
    raw = raw if isinstance(raw, dict) else {"name": ""}
    return Metadata(
        name=_name(raw, notes),
        namespace=_text(raw, "namespace") or "default",
        uid=_text(raw, "uid"),
        generation=raw["generation"] if isinstance(raw.get("generation"), int) else 0,
        labels=_texts(raw, "labels"),
        annotations=_texts(raw, "annotations"),
    )


def _name(raw: Manifest, notes: Notes) -> str:
    name, prefix = _text(raw, "name"), _text(raw, "generateName")
    if name:
        check_name(name, ("metadata", "name"), notes)
    elif prefix:
        name = f"{prefix}00000"  # the server appends five characters
        check_name(name, ("metadata", "generateName"), notes)
    elif raw.get("name") is None:
        notes.error(("metadata", "name"), "must be given", "give the job a name")
    return name


def check_name(name: str, path: tuple[str | int, ...], notes: Notes) -> None:
    """A job's name is part of host names, so it must be a DNS label (RFC 1035)."""
    if not DNS_LABEL.fullmatch(name):
        better = as_name(name)
        notes.error(path, RULE, f'for example "{better}"' if better else "", name)


def as_name(text: str, otherwise: str = "") -> str:
    """A valid job name made from any text, such as the name of a folder; short enough for pod names."""
    letters = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("0123456789-")
    return letters[:40].rstrip("-") or otherwise


def _text(raw: Manifest, key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _texts(raw: Manifest, key: str) -> dict[str, str]:
    value = raw.get(key)
    return {name: _text(value, name) for name in value} if isinstance(value, dict) else {}
