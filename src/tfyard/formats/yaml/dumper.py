"""Values -> YAML in the one style for everything that we write."""

from collections.abc import Sequence
from typing import Any

import yaml

from tfyard.formats.yaml import scalars


def dump(documents: Sequence[object]) -> str:
    text: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        width=10_000,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=len(documents) > 1,
    )
    return text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent_text(dumper: Any, text: str) -> yaml.Node:
    """Text with several lines is a block, so that a script in a manifest reads as a script."""
    is_block = "\n" in text and not any(line.endswith((" ", "\t")) for line in text.split("\n"))
    style = "|" if is_block else "'" if _needs_quotes(text) else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


def _needs_quotes(text: str) -> bool:
    """PyYAML does not quote `y` and `1e3`, which kubectl, and so tfyard, does not read as text."""
    try:
        return not isinstance(scalars.resolve(text), str)
    except scalars.TooLarge:
        return True


_Dumper.add_representer(str, _represent_text)
