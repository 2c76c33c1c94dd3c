"""Names of images. The API server accepts any text; nodes check this grammar and report InvalidImageName."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.model import Problem
from tfyard.model.names import DEFAULT_IMAGE

NOT_A_NAME = "is not the name of an image: nodes refuse it (InvalidImageName)"
_LONGEST = 512
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})"
_NAME = re.compile(
    rf"(?![a-f0-9]{{64}}$)(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[\w][\w.-]{{0,127}})?(?:@{_DIGEST})?", re.ASCII
)
"""64 hexadecimal digits are not a name: they are the ID of an image, which registries do not know."""
_PLACEHOLDER = re.compile(r"<[^<>]+>|\$\{\w+\}|\$\(\w+\)|\$\w+|\{\{.*?\}\}")


def check(image: str, path: Path, notes: Notes) -> None:
    if not _is_name(image):
        notes.error(path, NOT_A_NAME, _fix(image), image)


def as_warnings(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems with wrong names of images as warnings, for local runs, which use no images."""
    return tuple(replace(p, severity="warning") if p.message == NOT_A_NAME else p for p in problems)


def _is_name(image: str) -> bool:
    return len(image) <= _LONGEST and _NAME.fullmatch(image) is not None


def _fix(image: str) -> str:
    if placeholder := _PLACEHOLDER.search(image[:_LONGEST]):
        return f"replace {placeholder[0]} with a name of your own, as in {DEFAULT_IMAGE}"
    bare = re.sub(r"^\w+://", "", image.strip())
    better = next((name for name in (bare, bare.lower()) if _is_name(name)), None)
    return f'for example "{better}"' if better else f"write REGISTRY/NAME:TAG, as in {DEFAULT_IMAGE}"
