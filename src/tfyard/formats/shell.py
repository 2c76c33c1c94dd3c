"""`run` as text is a line for the shell; where it is one program, the shell makes way for it.

A shell that stays is the process that the cluster asks to stop, and it tells nobody: the program would be killed
after the grace period without ever having heard of it, its last checkpoint unwritten.
"""

import re
import shlex

SHELL = ["/bin/sh", "-c"]

_ASSIGNMENTS = re.compile(r"""\s*(?:[A-Za-z_]\w*=(?:"[^"$`]*"|'[^']*'|[\w./:,=+%@-])*\s+)*""")
_PROGRAM = re.compile(r"[\w./+-]+")
_JOINED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_OPERATORS = "();<>|&"
_REDIRECT = {">", ">>", "<", ">&", "<&"}
"""The operators that do not make several commands of a line."""
_BUILTINS = {
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts",
    "hash", "if", "jobs", "kill", "let", "local", "newgrp", "printf", "pwd", "read", "readonly", "return",
    "select", "set", "shift", "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
}  # fmt: skip
"""The shell's own words: there need not be a program of that name to make way for."""


def command(line: str) -> list[str]:
    start = _ASSIGNMENTS.match(line)
    at = start.end() if start else 0
    return [*SHELL, f"{line[:at]}exec {line[at:]}" if _is_one_program(line[at:]) else line]


def line_of(command_line: list[str]) -> str | None:
    """The text of `run` that becomes exactly this command, or None."""
    if command_line[:2] != SHELL or len(command_line) != 3:
        return None
    text = command_line[2]
    lines = (re.sub(r"\bexec ", "", text, count=1), text)
    return next((line for line in lines if command(line) == command_line), None)


def _is_one_program(line: str) -> bool:
    """In doubt it is not: the line then runs as it stands."""
    if _has_lines(line.rstrip()):
        return False
    try:
        first, *others = _words(line)
    except ValueError:
        return False  # empty, or a quotation without an end, of which the shell tells better
    several = any(word not in _REDIRECT and not word.strip(_OPERATORS) for word in others if word)
    return bool(_PROGRAM.fullmatch(first)) and first not in _BUILTINS and not several


def _has_lines(text: str) -> bool:
    """A backslash that is itself escaped joins no lines, and neither does one in a comment. Whether a `#`
    begins a comment is the shell's to say: a broken line with one in it counts as several."""
    return "\n" in _JOINED.sub(r"\1", text) or ("\n" in text and "#" in text)


def _words(line: str) -> list[str]:
    words = shlex.shlex(line, posix=True, punctuation_chars=_OPERATORS)
    words.whitespace_split, words.commenters = True, ""
    return list(words)
