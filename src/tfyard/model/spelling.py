"""Suggestions for words that are probably misspelt."""

from collections.abc import Iterable


def closest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that is most similar, or None."""
    from difflib import get_close_matches  # 3 ms, needed only if there is a typo to explain

    folded = {name.lower(): name for name in known}
    matches = get_close_matches(word.lower(), folded, n=1, cutoff=likeness)
    return folded[matches[0]] if matches else None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar, else the first one that begins with this one."""
    known = list(known)
    return closest(name, known) or next((each for each in known if each.startswith(name)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    known = list(known)
    best = closest(word, known)
    choices = f"one of: {', '.join(known)}" if known else "there are none"
    return f"did you mean {best}?" if best else choices
