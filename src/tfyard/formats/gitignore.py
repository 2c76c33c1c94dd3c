"""The rules of a `.gitignore` or `.tfyardignore`: which paths they leave out.

pathspec translates the patterns. Which of them decides is found here, one path at a time on the way down, because
that is how git reads rules such as `*`, `!*/`, `!*.py`: a folder that is left out is not entered.
"""

from re import Match

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_MARK = "ps_d"
"""pathspec's group for the `/` after a folder of which the whole path is a part."""


class Rules:
    """`folder`: where the file is, ending with `/`; empty at the top."""

    def __init__(self, text: str, folder: str = "") -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        self.folder = folder
        self._patterns = [found for line in lines if (found := _pattern(line.removesuffix("\r")))]

    def ignores(self, path: str) -> bool | None:
        """Whether they leave out this path from the top; a folder's ends with `/`. None: they do not say."""
        inside = path.removeprefix(self.folder)
        return next((each.include for each in reversed(self._patterns) if _is_about(each, inside)), None)


def _pattern(line: str) -> GitIgnoreSpecPattern | None:
    """None for comments, and for what git cannot read either."""
    try:
        found = GitIgnoreSpecPattern(f"{line}*/" if line.endswith("/**/") else line)  # as git reads it
    except ValueError:
        return None
    return found if found.include is not None else None


def _is_about(pattern: GitIgnoreSpecPattern, path: str) -> bool:
    """About the path itself: not about a folder above it, which was decided before, and not only about what is
    inside of it, as `folder/**` is."""
    assert pattern.regex is not None
    for found in pattern.regex.finditer(path):
        has_mark = bool(found.groupdict().get(_MARK))
        is_whole = found.end(_MARK) == len(path) if has_mark else not _ends_with_slash(found)
        if is_whole:
            return True
    return False


def _ends_with_slash(found: Match[str]) -> bool:
    return found.string.endswith("/") and found.end() == len(found.string)
