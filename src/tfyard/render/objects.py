"""Rendered objects with the comments that `--explain` adds, and their YAML text.

PyYAML writes no comments, so they are inserted between its lines afterwards.
"""

import textwrap
from collections.abc import Mapping, Sequence

import yaml
from msgspec import Struct

from tfyard import formats
from tfyard.model import Manifest

Path = tuple[str | int, ...]

WIDTH = 100
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RenderedObject(Struct, frozen=True):
    manifest: Manifest
    comment: str = ""
    """Purpose of the object, in one or two sentences."""
    field_comments: dict[Path, str] = {}
    """Purpose of single fields, by path."""


def to_yaml(objects: Sequence[RenderedObject], *, explain: bool = False) -> str:
    if not explain:
        return formats.to_yaml(*(rendered.manifest for rendered in objects))
    return "".join(f"---\n{_with_comments(rendered)}" for rendered in objects)


def _with_comments(rendered: RenderedObject) -> str:
    head = "".join(f"{line}\n" for line in _comment_lines(rendered.comment, 0))
    return head + _insert(formats.to_yaml(rendered.manifest), rendered.field_comments)


def _insert(text: str, comments: Mapping[Path, str]) -> str:
    """Inserts a comment above the field of each path; a path that does not exist is skipped."""
    root = yaml.compose(text, Loader=_LOADER)
    marks = [(mark, comment) for path, comment in comments.items() if (mark := _find(root, path)) is not None]
    lines = text.splitlines(keepends=True)
    for mark, comment in sorted(marks, key=lambda pair: -pair[0].line):
        indent = len(lines[mark.line]) - len(lines[mark.line].lstrip(" "))
        lines[mark.line : mark.line] = [f"{line}\n" for line in _comment_lines(comment, indent)]
    return "".join(lines)


def _find(node: yaml.Node | None, path: Path) -> yaml.Mark | None:
    """Position of the key or item at the end of the path; None if it does not exist."""
    mark = None
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == step), None)
            if pair is None:
                return None
            mark, node = pair[0].start_mark, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            mark = node.start_mark
        else:
            return None
    return mark


def _comment_lines(sentence: str, indent: int) -> list[str]:
    start = " " * indent + "# "
    return textwrap.wrap(sentence, WIDTH, initial_indent=start, subsequent_indent=start)
