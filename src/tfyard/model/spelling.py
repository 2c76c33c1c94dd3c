"""Suggestions for words that are probably misspelt."""

from collections.abc import Iterable


def closest(word: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that is most similar, or None."""
    from difflib import get_close_matches  # 3 ms, needed only if there is a typo to explain

    folded = {name.lower(): name for name in names}
    matches = get_close_matches(word.lower(), folded, n=1, cutoff=likeness)
    return folded[matches[0]] if matches else None


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that is most similar, else the first one that begins with this one."""
    names = list(names)
    return closest(name, names) or next((each for each in names if each.startswith(name)), None)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    names = list(names)
    best = closest(word, names)
    choices = f"one of: {', '.join(names)}" if names else "there are none"
    return f"did you mean {best}?" if best else choices
