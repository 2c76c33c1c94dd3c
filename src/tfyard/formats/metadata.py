"""The metadata of a TFJob object: the few fields that a job is known by."""

import re
from typing import Any

from msgspec import Struct

from tfyard.model import Manifest

from .shape import Notes

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


def load(document: Manifest, notes: Notes) -> Metadata | None:
    raw = document.get("metadata")
    if not isinstance(raw, dict):
        notes.error(("metadata",), "must be given", "metadata: {name: my-job}")
        return None
    name = _name(raw, notes)
    return Metadata(
        name=name,
        namespace=_text(raw, "namespace", notes) or "default",
        uid=_text(raw, "uid", notes),
        generation=raw["generation"] if isinstance(raw.get("generation"), int) else 0,
        labels=_texts(raw, "labels", notes),
        annotations=_texts(raw, "annotations", notes),
    )


def _name(raw: Manifest, notes: Notes) -> str:
    prefix = _text(raw, "generateName", notes)
    name = _text(raw, "name", notes) or (f"{prefix}00000" if prefix else "")  # the server adds five letters
    if not name:
        notes.error(("metadata", "name"), "must be given", "a name for the job")
    else:
        check_name(name, ("metadata", "name"), notes)
    return name


def check_name(name: str, path: tuple[str | int, ...], notes: Notes) -> None:
    """Host names are made of it, so it must be a DNS label (RFC 1035)."""
    if not DNS_LABEL.fullmatch(name):
        text = "must be lower-case letters, digits and '-', begin with a letter and not end with '-'"
        notes.error(path, text, _better_name(name), name)


def _better_name(name: str) -> str:
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").lstrip("0123456789-")
    return f'for example "{better}"' if better else ""


def _text(raw: Manifest, key: str, notes: Notes) -> str:
    value = raw.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    notes.error(("metadata", key), "must be text", "quote it", value)
    return ""


def _texts(raw: Manifest, key: str, notes: Notes) -> dict[str, str]:
    value = raw.get(key) or {}
    if not isinstance(value, dict):
        notes.error(("metadata", key), "must be a mapping", "", value)
        return {}
    for name, text in value.items():
        if not isinstance(text, str):
            notes.error(("metadata", key, name), "must be text", "quote it", text)
    return {name: str(text) for name, text in value.items()}
