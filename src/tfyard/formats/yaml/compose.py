"""YAML events -> plain values, each with its position in the file.

PyYAML's own composer is recursive C code that crashes the interpreter on a deeply nested file, loses the source
text, and lets the last of two equal keys win. This composer has its own stack and counts the size to which aliases
would expand, so that an alias bomb is rejected before it uses memory.
"""

from collections.abc import Iterator
from typing import Any

from tfyard import errors
from tfyard.formats.yaml import scalars
from tfyard.model.problem import FieldPath, Position, Problem

MAX_DEPTH = 64
MAX_NODES = 500_000
MAX_DOCUMENTS = 1_000
MAX_SCALAR = 1 << 20
MAX_KEY = 1_024
MAX_EXPANDED_TEXT = 32 << 20
MAX_PROBLEMS = 50

_SPLIT = "split the file, or check that it is the right one"
_TAGS = frozenset(scalars.STANDARD + kind for kind in ("str", "int", "float", "bool", "null"))
_TAG_OF: dict[type, str] = {dict: scalars.STANDARD + "map", list: scalars.STANDARD + "seq"}
_CUT = 60
_KEY_FIX = "write the key as text; a template such as {{ name }} must be quoted"


class YamlNode:
    """A value with its position. Aliases share the children of their anchor, so data must not be changed."""

    __slots__ = ("children", "key_mark", "mark", "text", "value")

    def __init__(self, value: Any, mark: Any, text: str | None = None, children: Any = None) -> None:
        self.value = value
        self.text = text  # the text of a scalar before it became a value
        self.children = children  # dict[str, Node] of a mapping, list[Node] of a sequence
        self.mark = mark
        self.key_mark: Any = None

    def position(self) -> Position:
        return _position(self.mark)

    def key_position(self) -> Position:
        """Position of the key; list items and roots have none, so their own position is used."""
        return _position(self.key_mark or self.mark)


class _Anchor:
    __slots__ = ("height", "letters", "node", "nodes")

    def __init__(self, node: YamlNode, nodes: int, letters: int, height: int) -> None:
        self.node, self.nodes, self.letters, self.height = node, nodes, letters, height


class _OpenCollection:
    """A collection that is still open."""

    __slots__ = (
        *("node", "is_map", "key", "key_mark", "merging", "merge_mark", "merges"),
        *("anchor", "nodes", "letters", "height"),
    )

    def __init__(self, node: YamlNode, anchor: str | None, nodes: int, letters: int) -> None:
        self.node, self.anchor, self.nodes, self.letters = node, anchor, nodes, letters
        self.is_map = type(node.value) is dict
        self.height = 1
        self.key: str | None = None
        self.key_mark: Any = None
        self.merging = False
        self.merge_mark: Any = None
        self.merges: list[YamlNode] = []


class Composer:
    """Turns events into the root Node of each document that is not empty, and collects the problems."""

    def __init__(self) -> None:
        import yaml  # 12 ms; a run of a script reads no YAML

        self.problems: list[Problem] = []
        self.nodes = self.letters = self.documents = 0
        self._stack: list[_OpenCollection] = []
        self._anchors: dict[str, _Anchor | None] = {}
        self._root: YamlNode | None = None
        self._handlers = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.MappingStartEvent: self._open_map,
            yaml.SequenceStartEvent: self._open_list,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.DocumentStartEvent: self._start,
        }
        self._end = yaml.DocumentEndEvent

    def documents_of(self, events: Iterator[Any]) -> Iterator[YamlNode]:
        handlers = self._handlers
        for event in events:
            kind = type(event)
            if kind in handlers:
                handlers[kind](event)
            elif kind is self._end and self._root is not None:
                yield self._root

    def report(self, message: str, fix: str, mark: Any) -> None:
        self.problems.append(Problem(self.path(), message, fix, position=_position(mark)))
        if len(self.problems) >= MAX_PROBLEMS:
            raise errors.Invalid(self.problems)

    def refuse(self, message: str, fix: str, mark: Any) -> None:
        """Stops at once, for limits: to continue would do the work that the limit forbids."""
        self.report(message, fix, mark)
        raise errors.Invalid(self.problems)

    def path(self) -> FieldPath:
        """Path of the value that is being read."""
        steps: list[str | int] = []
        for frame in self._stack:
            if not frame.is_map:
                steps.append(len(frame.node.children))
            elif frame.key is not None:
                steps.append(frame.key)
        return tuple(steps)

    def _start(self, event: Any) -> None:
        self._anchors.clear()
        self._root = None
        self.documents += 1
        if self.documents > MAX_DOCUMENTS:
            self.refuse(f"more than {MAX_DOCUMENTS:,} documents in one file", _SPLIT, event.start_mark)

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        self._count(1, len(text), event.start_mark)
        if len(text) > MAX_SCALAR:
            message = f"a value has {len(text):,} characters; at most {MAX_SCALAR:,} are allowed"
            self.refuse(
                message, "keep large data in a file or an image, not in the manifest", event.start_mark
            )
        if not self._stack and not text and event.implicit[0] and event.anchor is None:
            return  # an empty document: nothing follows `---`
        node = YamlNode(self._value(event), event.start_mark, text)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(node, 1, len(text), 0)
        self._take(node, is_merge=text == "<<" and event.implicit[0])

    def _value(self, event: Any) -> scalars.Scalar:
        text: str = event.value
        try:
            if event.tag is not None:
                return self._tagged(event)
            return scalars.resolve(text) if event.implicit[0] else text
        except scalars.TooLarge:
            self.report(f"the number {_cut(text)} does not fit into 64 bits", "quote it", event.start_mark)
        except ValueError as error:
            self.report(str(error), "remove the tag or correct the value", event.start_mark)
        return text

    def _tagged(self, event: Any) -> scalars.Scalar:
        if event.tag == "!" or event.tag in _TAGS:
            return scalars.as_tagged(event.value, event.tag)
        self._bad_tag(event)
        return str(event.value)

    def _bad_tag(self, event: Any) -> None:
        tag = event.tag.replace(scalars.STANDARD, "!!")
        fix = f"remove {_cut(tag)}; if it is part of the text, quote the value"
        self.report(f"the tag {_cut(tag)} is not supported", fix, event.start_mark)

    def _alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            return self._bad_alias(event)
        self._count(anchor.nodes, anchor.letters, event.start_mark)
        self._check_depth(anchor.height, event.start_mark)
        if self._stack:
            self._stack[-1].height = max(self._stack[-1].height, anchor.height + 1)
        seen = anchor.node
        return self._take(YamlNode(seen.value, event.start_mark, seen.text, seen.children))

    def _bad_alias(self, event: Any) -> None:
        name = _cut(event.anchor)
        if event.anchor in self._anchors:
            self.report(f"the alias *{name} refers to itself", "write the value out", event.start_mark)
        else:
            message = f"the alias *{name} has no anchor &{name} above it"
            self.report(message, "quote the value or remove the line", event.start_mark)
        self._take(YamlNode("", event.start_mark, ""))

    def _open_map(self, event: Any) -> None:
        self._open(event, {}, {})

    def _open_list(self, event: Any) -> None:
        self._open(event, [], [])

    def _open(self, event: Any, value: Any, children: Any) -> None:
        self._count(1, 0, event.start_mark)
        self._check_depth(1, event.start_mark)
        if event.tag is not None and event.tag not in ("!", _TAG_OF[type(value)]):
            self._bad_tag(event)
        node = YamlNode(value, event.start_mark, children=children)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_OpenCollection(node, event.anchor, self.nodes - 1, self.letters))

    def _close(self, _event: Any) -> None:
        frame = self._stack.pop()
        if frame.merges:
            _merge(frame.node, frame.merges)
        if frame.anchor is not None:
            nodes, letters = self.nodes - frame.nodes, self.letters - frame.letters
            self._anchors[frame.anchor] = _Anchor(frame.node, nodes, letters, frame.height)
        if self._stack:
            self._stack[-1].height = max(self._stack[-1].height, frame.height + 1)
        self._take(frame.node)

    def _take(self, node: YamlNode, is_merge: bool = False) -> None:
        """Adds a complete value to the collection that contains it."""
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        if not frame.is_map:
            frame.node.value.append(node.value)
            frame.node.children.append(node)
        elif frame.key is None:
            self._take_key(frame, node, is_merge)
        else:
            self._take_value(frame, node)

    def _take_key(self, frame: _OpenCollection, node: YamlNode, is_merge: bool) -> None:
        if is_merge:
            key, first = "<<", frame.merge_mark
            frame.merge_mark = node.mark
        else:
            key = self._key(node)
            first = frame.node.children[key].key_mark if key in frame.node.children else None
        frame.key, frame.key_mark, frame.merging = key, node.mark, is_merge
        if first is not None:
            at = _position(first)
            message = f'duplicate key "{_cut(key)}"; the first is at line {at.line}, column {at.column}'
            self.report(message, "remove one of the two", node.mark)

    def _key(self, node: YamlNode) -> str:
        if type(node.value) is str:
            if len(node.value) > MAX_KEY:
                message = f"a key has {len(node.value):,} characters; at most {MAX_KEY:,} are allowed"
                self.refuse(message, "shorten it", node.mark)
            return node.value
        if node.text is None:
            message, fix = "a key must be text, not a mapping or a list", _KEY_FIX
        else:
            kind = {bool: "true or false", type(None): "null"}.get(type(node.value), "a number")
            message, fix = (
                f"the key {_cut(node.text) or '(nothing)'} is read as {kind}, not as text",
                "quote it",
            )
        self.report(message, fix, node.mark)
        return node.text or ""

    def _take_value(self, frame: _OpenCollection, node: YamlNode) -> None:
        node.key_mark = frame.key_mark
        if frame.merging:
            self._take_merge(frame, node)
        else:
            frame.node.value[frame.key] = node.value
            frame.node.children[frame.key] = node
        frame.key = None

    def _take_merge(self, frame: _OpenCollection, node: YamlNode) -> None:
        sources = node.children if type(node.value) is list else [node]
        if all(type(source.value) is dict for source in sources):
            frame.merges.extend(sources)
        else:
            self.report(
                '"<<" must be a mapping or a list of mappings', 'quote "<<" if it is a name', node.mark
            )

    def _count(self, nodes: int, letters: int, mark: Any) -> None:
        self.nodes += nodes
        self.letters += letters
        if self.nodes > MAX_NODES:
            self.refuse(f"more than {MAX_NODES:,} values, with aliases (*name) expanded", _SPLIT, mark)
        if self.letters > MAX_EXPANDED_TEXT:
            message = f"more than {MAX_EXPANDED_TEXT:,} characters, with aliases (*name) expanded"
            self.refuse(message, _SPLIT, mark)

    def _check_depth(self, height: int, mark: Any) -> None:
        if len(self._stack) + height > MAX_DEPTH:
            self.refuse(
                f"nested more than {MAX_DEPTH} levels deep", "flatten it; no manifest is this deep", mark
            )


def _merge(node: YamlNode, merges: list[YamlNode]) -> None:
    """Adds the keys of `<<`: a key of the mapping itself wins, then the earlier source."""
    children: dict[str, YamlNode] = {}
    for source in merges:
        for key, child in source.children.items():
            children.setdefault(key, child)
    children.update(node.children)
    node.children = children
    node.value = {key: child.value for key, child in children.items()}


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[:_CUT] + "…"
