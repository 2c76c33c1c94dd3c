"""Comments for `--explain`. Our YAML writer knows none, so they are put in between the lines afterwards."""

from collections.abc import Mapping

import yaml

Path = tuple[str | int, ...]

WIDTH = 100
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def head(sentence: str) -> str:
    return "".join(f"{line}\n" for line in _lines(sentence, 0))


def insert(text: str, notes: Mapping[Path, str]) -> str:
    """A comment above the field of each path; a path that is not there is passed over."""
    root = yaml.compose(text, Loader=_LOADER)
    wanted = [(mark, note) for path, note in notes.items() if (mark := _find(root, path)) is not None]
    lines = text.splitlines(keepends=True)
    for mark, note in sorted(wanted, key=lambda found: -found[0].line):
        lines[mark.line : mark.line] = [f"{line}\n" for line in _lines(note, _indent(lines[mark.line]))]
    return "".join(lines)


def _find(node: yaml.Node | None, path: Path) -> yaml.Mark | None:
    """The place of the key, or of the item, that the path ends with."""
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


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _lines(sentence: str, indent: int) -> list[str]:
    import textwrap  # only for `--explain`

    start = " " * indent + "# "
    return textwrap.wrap(sentence, WIDTH, initial_indent=start, subsequent_indent=start)
