"""`run` as text is a shell line; if it is a single program, the shell replaces itself with it (`exec`).

Without `exec`, the shell would get the signal to stop and not pass it on: the program would be killed after the
grace period, without time to write its last checkpoint.
"""

import re
import shlex

from tfyard.model.expansion import escape, expand

SHELL = ["/bin/sh", "-c"]

_ASSIGNMENTS = re.compile(r"""\s*(?:[A-Za-z_]\w*=(?:"[^"$`]*"|'[^']*'|[\w./:,=+%@-])*\s+)*""")
_PROGRAM = re.compile(r"[\w./+-]+")
_JOINED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_OPERATORS = "();<>|&"
_REDIRECT = {">", ">>", "<", ">&", "<&"}
"""Operators after which the line is still a single command."""
_BUILTINS = {
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts",
    "hash", "if", "jobs", "kill", "let", "local", "newgrp", "printf", "pwd", "read", "readonly", "return",
    "select", "set", "shift", "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
}  # fmt: skip
"""Built into the shell: there may be no program of that name for `exec`."""


def command(line: str) -> list[str]:
    """Of a container: escaped for the kubelet, so that the shell gets the line as it is written."""
    return [*SHELL, escape(with_exec(line))]


def with_exec(line: str) -> str:
    start = _ASSIGNMENTS.match(line)
    at = start.end() if start else 0
    return f"{line[:at]}exec {line[at:]}" if _is_one_program(line[at:]) else line


def line_of(command_line: list[str]) -> str | None:
    """The text of `run` that becomes exactly this command, or None."""
    if command_line[:2] != SHELL or len(command_line) != 3:
        return None
    text = expand(command_line[2], {})
    lines = (re.sub(r"\bexec ", "", text, count=1), text)
    return next((line for line in lines if command(line) == command_line), None)


def _is_one_program(line: str) -> bool:
    """In doubt False: the line then runs unchanged."""
    if _has_lines(line.rstrip()):
        return False
    try:
        first, *others = _words(line)
    except ValueError:
        return False  # empty, or an unclosed quote, which the shell reports better
    several = any(word not in _REDIRECT and not word.strip(_OPERATORS) for word in others if word)
    return bool(_PROGRAM.fullmatch(first)) and first not in _BUILTINS and not several


def _has_lines(text: str) -> bool:
    """Whether there are several lines after continuation lines are joined. An escaped backslash does not continue
    a line, nor does one in a comment; only the shell knows comments, so with a `#` the lines count as several."""
    return "\n" in _JOINED.sub(r"\1", text) or ("\n" in text and "#" in text)


def _words(line: str) -> list[str]:
    words = shlex.shlex(line, posix=True, punctuation_chars=_OPERATORS)
    words.whitespace_split, words.commenters = True, ""
    return list(words)
