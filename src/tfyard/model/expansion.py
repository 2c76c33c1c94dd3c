"""The kubelet's references in commands, arguments and variables: `$(NAME)` is a value, `$$` is a `$`."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SPECIAL = re.compile(r"\$(?=[$(])")


def expand(text: str, env: Mapping[str, str]) -> str:
    """By the kubelet's rules: unknown names stay as they are."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else env.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def escape(text: str) -> str:
    """The text that the kubelet expands to this one, whatever the variables are."""
    return _SPECIAL.sub("$$", text)


def references(text: str) -> set[str]:
    """The names that the kubelet would replace."""
    return {match[1] for match in _REFERENCE.finditer(text) if match[1]}
