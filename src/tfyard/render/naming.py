"""One name for one thing: roles may each call something else `data`."""

from tfyard.model import Manifest
from tfyard.model.names import MAX_LABEL


def name_for(thing: Manifest, name: str, known: dict[str, Manifest], limit: int = MAX_LABEL) -> str:
    """This name, or one with a number behind it where something different is known by it."""
    found, number = name, 1
    while known.get(found, thing) != thing:
        number += 1
        end = f"-{number}"
        found = f"{name[: limit - len(end)]}{end}"
    return found
