"""A rendered object with the comments that `--explain` adds, and the YAML text of many.

The YAML writer writes no comments, so they are inserted between its lines afterwards.
"""

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
    """Where it comes from, in one or two sentences."""
    field_comments: dict[Path, str] = {}
    """The same for single fields."""


def to_yaml(objects: Sequence[RenderedObject], *, explain: bool = False) -> str:
    if not explain:
        return formats.to_yaml(*(one.manifest for one in objects))
    return "".join(f"---\n{_with_comments(one)}" for one in objects)


def _with_comments(one: RenderedObject) -> str:
    head = "".join(f"{line}\n" for line in _comment_lines(one.comment, 0))
    return head + _insert(formats.to_yaml(one.manifest), one.field_comments)


def _insert(text: str, comments: Mapping[Path, str]) -> str:
    """A comment above the field of each path; a path that does not exist is skipped."""
    root = yaml.compose(text, Loader=_LOADER)
    found = [(mark, comment) for path, comment in comments.items() if (mark := _find(root, path)) is not None]
    lines = text.splitlines(keepends=True)
    for mark, comment in sorted(found, key=lambda pair: -pair[0].line):
        indent = len(lines[mark.line]) - len(lines[mark.line].lstrip(" "))
        lines[mark.line : mark.line] = [f"{line}\n" for line in _comment_lines(comment, indent)]
    return "".join(lines)


def _find(node: yaml.Node | None, path: Path) -> yaml.Mark | None:
    """The position of the key, or of the item, that the path ends with."""
    mark = None
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == step), None)
            if found is None:
                return None
            mark, node = found[0].start_mark, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            mark = node.start_mark
        else:
            return None
    return mark


def _comment_lines(sentence: str, indent: int) -> list[str]:
    import textwrap  # only for `--explain`

    start = " " * indent + "# "
    return textwrap.wrap(sentence, WIDTH, initial_indent=start, subsequent_indent=start)
