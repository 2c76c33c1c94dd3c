"""References that the kubelet expands in commands, arguments and env: `$(NAME)` is a value, `$$` is a `$`."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SPECIAL = re.compile(r"\$(?=[$(])")


def expand(text: str, env: Mapping[str, str]) -> str:
    """Expands references by the kubelet's rules: references to unknown names stay as they are."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else env.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def escape(text: str) -> str:
    """A text that the kubelet expands to exactly `text`, whatever the variables are."""
    return _SPECIAL.sub("$$", text)


def references(text: str) -> set[str]:
    """Names of the variables that the text refers to."""
    return {match[1] for match in _REFERENCE.finditer(text) if match[1]}
