"""TensorFlow's version and devices, where the log of a program says so."""

import re

_VERSION = re.compile(
    r"\b(?:tensorflow|tf)(?:[ _]version|\.__version__)?\s*[:=]?\s*v?(\d+\.\d+\.\d+\S{0,20})", re.I
)
_DEVICE = re.compile(
    r"Creat(?:ed|ing) (?:TensorFlow )?device \(?/(?:job:\S*?/device:)?(?P<kind>\w+:\d+)\)?"
    r"(?: with (?P<memory>\d+) MB memory)?.*?name: (?P<name>[^,\n]+)"
)
"""TensorFlow 2 writes `Created device`; TensorFlow 1 `Created TensorFlow device`, and at first without memory."""
_NAMED = re.compile(r"PhysicalDevice\(name='/physical_device:(?P<kind>(?!CPU)\w+:\d+)'")
MOST_DEVICES = 64


def tensorflow_version(log: str) -> str:
    """The version; empty: the log does not say it."""
    match = _VERSION.search(log)
    return match[1].rstrip(",;.)'\"") if match else ""


def devices(log: str) -> tuple[str, ...]:
    """The accelerators, each once: `GPU:0 Tesla T4, 13764 MB`."""
    described = dict(map(_described, _DEVICE.finditer(log)))
    named = {match["kind"]: match["kind"] for match in _NAMED.finditer(log)}
    return tuple(({**named, **described}).values())[:MOST_DEVICES]


def _described(match: re.Match[str]) -> tuple[str, str]:
    kind, memory = match["kind"].upper(), f", {match['memory']} MB" if match["memory"] else ""
    return kind, f"{kind} {match['name']}{memory}"
