"""`run` as text is a script for the shell; if it ends with a program, the shell replaces itself with it (`exec`).

Without `exec`, the shell would get the signal to stop and not pass it on: the program would be killed after the
grace period, without time to write its last checkpoint.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from tfyard.model.expansion import escape, expand

SHELL = ["/bin/sh", "-c"]

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|(?<=[\s;&|])\\\n|\\\n(?=[ \t])|\#[^\n]*)
    |(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\[^\n]|[^\s'"\\;&|<>()`])+)
    |(?P<operator>\n|[;&|<>()]+)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'[^']*'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_ASSIGNMENT = re.compile(r"""[A-Za-z_]\w*=(?:"[^"$`]*"|'[^']*'|[\w./:,=+%@-])*""")
_PROGRAM = re.compile(r"(?!\d+$)[\w./+-]+")
"""A number is not one: `2> log python` starts with a redirection."""
_SEPARATORS = {";", "\n", "&&", "||", "|"}
_REDIRECT = {">", ">>", "<", ">&", "<&"}
_COMPOUND = {
    "!", "[[", "alias", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "trap", "until", "while", "{", "}",
}  # fmt: skip
"""With one of these in it, the last line need not be what the script ends with, or what it says."""
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


def with_exec(script: str) -> str:
    at = _last_program(script)
    return script if at is None else f"{script[:at]}exec {script[at:]}"


def line_of(command_line: list[str]) -> str | None:
    """The text of `run` that becomes exactly this command, or None."""
    if command_line[:2] != SHELL or len(command_line) != 3:
        return None
    text = expand(command_line[2], {})
    without = (text[: found.start()] + text[found.end() :] for found in re.finditer(r"\bexec ", text))
    return next((line for line in (*without, text) if command(line) == command_line), None)


class _Word(Struct, frozen=True):
    text: str
    start: int


class _Command(Struct, frozen=True):
    follows: str
    """The separator before it."""
    words: list[_Word]


def _last_program(script: str) -> int | None:
    """Where the program starts that the script ends with; in doubt None: the script then runs unchanged."""
    try:
        commands = [one for one in _commands(script) if one.words or one.follows not in (";", "\n")]
    except ValueError:
        return None
    firsts = {one.words[0].text for one in commands if one.words}
    if not commands or commands[-1].follows == "|" or firsts & _COMPOUND:
        return None
    words = [*commands[-1].words]
    while words and _ASSIGNMENT.fullmatch(words[0].text):
        words.pop(0)
    is_program = words and _PROGRAM.fullmatch(words[0].text) and words[0].text not in _BUILTINS
    return words[0].start if is_program else None


def _commands(script: str) -> Iterator[_Command]:
    """The simple commands, in order. ValueError if there is something else, such as a subshell."""
    follows, words = "\n", list[_Word]()
    at = 0
    while at < len(script):
        found = _TOKEN.match(script, at)
        if found is None:
            raise ValueError(script[at:])
        kind, text = found.lastgroup, found[0]
        if kind == "word":
            _check_word(text)
        if kind == "operator" and text in _SEPARATORS:
            yield _Command(follows, words)
            follows, words = text, []
        elif kind == "operator" and text not in _REDIRECT:
            raise ValueError(text)
        elif kind != "blank":
            words.append(_Word(text, at))
        at = found.end()
    yield _Command(follows, words)


def _check_word(text: str) -> None:
    """ValueError for a substitution in quotes or braces that may have quotes and separators of its own."""
    quoted = [part[1] or "" for part in _QUOTED.finditer(text)]
    if text.count("{") != text.count("}") or any(map(_is_open, quoted)):
        raise ValueError(text)


def _is_open(quoted: str) -> bool:
    return quoted.count("(") != quoted.count(")") or "`" in quoted
