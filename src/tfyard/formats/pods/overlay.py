"""Kubernetes' strategic merge patch, for pod templates.

Mappings merge, null deletes, and a list merges by its key or is replaced, as Kubernetes' schema says for each
list. Two surprising behaviours of kubectl are kept, so that a patch gives the same pod with both: new items of a
list come *before* those that only the base has, and `$patch: delete` on a mapping leaves an empty mapping.
Three are different here: a null or a directive inside a new value is executed instead of stored, `$patch: replace`
also works where there is nothing to replace, and `$patch: merge`, the default, is accepted.
"""

from collections.abc import Hashable
from typing import Any

from tfyard import errors
from tfyard.formats.pods import fields
from tfyard.formats.pods.fields import Shape
from tfyard.model.problem import FieldPath, Problem

PATCH = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
REMOVE = "$deleteFromPrimitiveList"

# Fields unknown to this Kubernetes release: mappings merge, everything else is replaced.
_UNKNOWN = Shape("scalar", "any")

Map = dict[str, Any]


def merge(base: Map, patch: Map, definition: str = fields.ROOT) -> Map:
    """The merged value; base and patch are not changed. Raises `errors.Invalid` with paths inside the patch."""
    merger = _Merger()
    merged = merger.map(base, patch, fields.shape(definition), ())
    if merger.problems:
        raise errors.Invalid(merger.problems)
    return merged


class _Merger:
    """Collects the problems, so that all of them are reported at once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def map(self, base: Map, patch: Map, shape: Shape, path: FieldPath) -> Map:
        directive = patch.get(PATCH, "merge")
        if directive not in ("merge", "replace", "delete"):
            self._refuse((*path, PATCH), f"must be merge, replace or delete, not {directive!r}")
        if directive == "delete":
            return {}
        result = {} if directive == "replace" else dict(base)
        self._retain(result, patch, path)
        for key, value in patch.items():
            if not key.startswith("$"):
                self._set(result, key, value, _inner(shape, key), (*path, key))
        self._list_directives(base, result, patch, shape, path)
        return result

    def _set(self, result: Map, key: str, value: Any, shape: Shape, path: FieldPath) -> None:
        if value is None or (_is_deleted(value) and not isinstance(result.get(key), dict)):
            result.pop(key, None)
        elif not self._fits(value, shape, path):
            return
        elif isinstance(value, dict):
            result[key] = self.map(_if_type(result.get(key), dict), value, shape, path)
        elif isinstance(value, list):
            result[key] = self._list(_if_type(result.get(key), list), value, shape, path)
        else:
            result[key] = value

    def _fits(self, value: Any, shape: Shape, path: FieldPath) -> bool:
        expected = {"map": dict, "object": dict, "list": list}.get(shape.form)
        is_wrong = (
            not isinstance(value, expected) if expected else _is_nested(value) and shape is not _UNKNOWN
        )
        if is_wrong:
            kinds = {"list": "a list", "scalar": "a single value"}
            self._refuse(path, f"{_kind(value)} cannot be merged into {kinds.get(shape.form, 'a mapping')}")
        return not is_wrong

    def _list(self, base: list[Any], patch: list[Any], shape: Shape, path: FieldPath) -> list[Any]:
        if shape.merge_key:
            return self._keyed(base, patch, shape, path)
        if shape.merge_key == "":
            return _unite(base, patch)
        return self._replacement(patch, shape, path)

    def _replacement(self, patch: list[Any], shape: Shape, path: FieldPath) -> list[Any]:
        result: list[Any] = []
        for index, item in enumerate(patch):
            if _is_deleted(item):
                message = "this list is replaced as a whole, so single items cannot be deleted"
                self._refuse((*path, index, PATCH), message, "write the whole list")
            elif not isinstance(item, dict):
                result.append(item)
            elif item != {PATCH: "replace"}:
                result.append(self.map({}, item, _item(shape), (*path, index)))
        return result

    def _keyed(self, base: list[Any], patch: list[Any], shape: Shape, path: FieldPath) -> list[Any]:
        key = shape.merge_key or ""
        changes = [
            (index, item) for index, item in enumerate(patch) if self._has_key(item, key, (*path, index))
        ]
        if any(item.get(PATCH) == "replace" for _, item in changes):
            base, changes = [], [change for change in changes if change[1].get(PATCH) != "replace"]
        gone = {_identity(item, key) for _, item in changes if _is_deleted(item)}
        kept = [item for item in base if _identity(item, key) not in gone]
        changes = [change for change in changes if not _is_deleted(change[1])]
        merged = self._merge_items(kept, changes, shape, path)
        order = [_identity(item, key) for _, item in changes]
        return _arrange(merged, order, kept, key)

    def _merge_items(
        self, kept: list[Any], changes: list[tuple[int, Map]], shape: Shape, path: FieldPath
    ) -> list[Any]:
        """In an empty list every item is new, even two ports that differ only in their protocol."""
        key, result = shape.merge_key or "", list(kept)
        position = {_identity(item, key): index for index, item in reversed(list(enumerate(kept)))}
        for index, item in changes:
            at = position.get(_identity(item, key)) if kept else None
            base = {} if at is None else result[at]
            merged = self.map(base, item, _item(shape), (*path, index))
            if at is None:
                position[_identity(item, key)] = len(result)
                result.append(merged)
            else:
                result[at] = merged
        return result

    def _has_key(self, item: Any, key: str, path: FieldPath) -> bool:
        if not isinstance(item, dict):
            self._refuse(path, f"{_kind(item)} cannot be merged into a mapping")
            return False
        if item.get(PATCH) == "replace" or (
            key in item and item[key] is not None and not _is_nested(item[key])
        ):
            return True
        self._refuse(path, f'items of this list are merged by "{key}", which is missing here', f'add "{key}"')
        return False

    def _retain(self, result: Map, patch: Map, path: FieldPath) -> None:
        if RETAIN not in patch:
            return
        names = self._names(patch[RETAIN], (*path, RETAIN))
        for key, value in patch.items():
            if value is not None and not key.startswith("$") and key not in names:
                self._refuse((*path, key), f"is set, but {RETAIN} does not list it", f"add it to {RETAIN}")
        for key in [key for key in result if key not in names]:
            del result[key]

    def _list_directives(self, base: Map, result: Map, patch: Map, shape: Shape, path: FieldPath) -> None:
        for key, value in patch.items():
            directive, _, name = key.partition("/")
            if directive == REMOVE and name:
                gone = self._names(value, (*path, key))
                if isinstance(result.get(name), list):
                    result[name] = [item for item in result[name] if _is_nested(item) or item not in gone]
            elif directive == ORDER and name:
                self._reorder(base, result, name, value, _inner(shape, name), (*path, key))
            elif key.startswith("$") and key not in (PATCH, RETAIN):
                self._refuse((*path, key), f"unknown directive {key}")

    def _reorder(self, base: Map, result: Map, name: str, order: Any, shape: Shape, path: FieldPath) -> None:
        key = shape.merge_key
        if key is None or not isinstance(order, list):
            self._refuse(path, "must be a list, and is allowed only for lists that are merged")
        elif isinstance(result.get(name), list):
            order_of_patch = [_identity(item, key) for item in order]
            before = _if_type(base.get(name), list)
            known = {*order_of_patch, *(_identity(item, key) for item in before)}
            if any(_identity(item, key) not in known for item in result[name]):
                self._refuse(path, f"{name} has items that this order does not list", "list every item")
            result[name] = _arrange(result[name], order_of_patch, before, key)

    def _names(self, value: Any, path: FieldPath) -> list[Any]:
        if isinstance(value, list) and not any(_is_nested(item) for item in value):
            return value
        self._refuse(path, "must be a list of names")
        return []

    def _refuse(self, path: FieldPath, message: str, fix: str = "") -> None:
        self.problems.append(Problem(path, message, fix))


def _arrange(items: list[Any], order: list[Hashable], base: list[Any], key: str) -> list[Any]:
    """Sorts items as kubectl does: those of the patch in its order, the others in the order of the base. An item
    that only the base has comes before one of the patch only if the base has both in this order."""
    rank = {identity: index for index, identity in reversed(list(enumerate(order)))}
    old = {_identity(item, key): index for index, item in reversed(list(enumerate(base)))}
    ours = sorted(
        (item for item in items if _identity(item, key) in rank), key=lambda i: rank[_identity(i, key)]
    )
    theirs = [item for item in items if _identity(item, key) not in rank]
    theirs.sort(key=lambda item: old.get(_identity(item, key), len(old)))
    result: list[Any] = []
    waiting = 0
    for item in ours:
        limit = old.get(_identity(item, key), -1)
        while waiting < len(theirs) and old.get(_identity(theirs[waiting], key), limit) < limit:
            result.append(theirs[waiting])
            waiting += 1
        result.append(item)
    return result + theirs[waiting:]


def _unite(base: list[Any], patch: list[Any]) -> list[Any]:
    unique = list({_identity(item, ""): item for item in [*base, *patch]}.values())
    return _arrange(unique, [_identity(item, "") for item in patch], base, "")


def _identity(item: Any, key: str) -> Hashable:
    """A value that is equal for the same items. In JSON true is not 1; an item without the key equals no other."""
    value = item.get(key) if key and isinstance(item, dict) else item
    return id(item) if value is None or _is_nested(value) else (type(value), value)


def _inner(shape: Shape, key: str) -> Shape:
    if shape.form == "object":
        known = fields.fields(shape.of)
        return fields.shape(known[key]) if key in known else _UNKNOWN
    return _item(shape) if shape.form == "map" else _UNKNOWN


def _item(shape: Shape) -> Shape:
    return fields.shape(shape.of) if shape.form in ("list", "map") and shape.of != "any" else _UNKNOWN


def _is_deleted(value: Any) -> bool:
    return isinstance(value, dict) and value.get(PATCH) == "delete"


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _if_type(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else kind()


def _kind(value: Any) -> str:
    return (
        "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a single value"
    )
