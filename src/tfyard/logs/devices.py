"""TensorFlow's version and devices, where the log of a program says so."""

import re

_VERSION = re.compile(
    r"\b(?:tensorflow|tf)(?:[ _]version|\.__version__)?\s*[:=]?\s*v?(\d+\.\d+\.\d+\S{0,20})", re.I
)
_DEVICE = re.compile(
    r"Created device /job:\S*?/device:(?P<kind>\w+:\d+) with (?P<memory>\d+) MB memory:.*?name: (?P<name>[^,\n]+)"
)
_NAMED = re.compile(r"PhysicalDevice\(name='/physical_device:(?P<kind>(?!CPU)\w+:\d+)'")
MOST_DEVICES = 64


def tensorflow_version(log: str) -> str:
    """The version; empty: the log does not say it."""
    match = _VERSION.search(log)
    return match[1].rstrip(",;.)'\"") if match else ""


def devices(log: str) -> tuple[str, ...]:
    """The accelerators, each once: `GPU:0 Tesla T4, 13764 MB`."""
    made = {
        match["kind"]: f"{match['kind']} {match['name']}, {match['memory']} MB"
        for match in _DEVICE.finditer(log)
    }
    named = {match["kind"]: match["kind"] for match in _NAMED.finditer(log)}
    return tuple(({**named, **made}).values())[:MOST_DEVICES]
