"""`run` as text is a shell script. If it ends with a program, `exec` is added: the program replaces the shell.

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
"""A number is not a program: `2> log python` starts with a redirection."""
_SEPARATORS = {";", "\n", "&&", "||", "|"}
_REDIRECT = {">", ">>", "<", ">&", "<&"}
_COMPOUND = {
    "!", "[[", "alias", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "trap", "until", "while", "{", "}",
}  # fmt: skip
"""After these words, the last command of the text need not be the last that runs, or may mean something else."""
_BUILTINS = {
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts",
    "hash", "if", "jobs", "kill", "let", "local", "newgrp", "printf", "pwd", "read", "readonly", "return",
    "select", "set", "shift", "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
}  # fmt: skip
"""Commands of the shell itself, for which `exec` may find no program."""


def command(line: str) -> list[str]:
    """The command of a container, escaped for the kubelet, so that the shell gets the line unchanged."""
    return [*SHELL, escape(with_exec(line))]


def with_exec(script: str) -> str:
    at = _last_program(script)
    return script if at is None else f"{script[:at]}exec {script[at:]}"


def line_of(command_line: list[str]) -> str | None:
    """The text of `run` that results in exactly this command, or None."""
    if command_line[:2] != SHELL or len(command_line) != 3:
        return None
    text = expand(command_line[2], {})
    without = (text[: match.start()] + text[match.end() :] for match in re.finditer(r"\bexec ", text))
    return next((line for line in (*without, text) if command(line) == command_line), None)


class _Word(Struct, frozen=True):
    text: str
    start: int


class _Command(Struct, frozen=True):
    follows: str
    """The separator before the command."""
    words: list[_Word]


def _last_program(script: str) -> int | None:
    """Position of the program with which the script ends; None, if in doubt: the script then runs unchanged."""
    try:
        commands = [each for each in _commands(script) if each.words or each.follows not in (";", "\n")]
    except ValueError:
        return None
    firsts = {command.words[0].text for command in commands if command.words}
    if not commands or commands[-1].follows == "|" or firsts & _COMPOUND:
        return None
    words = [*commands[-1].words]
    while words and _ASSIGNMENT.fullmatch(words[0].text):
        words.pop(0)
    is_program = words and _PROGRAM.fullmatch(words[0].text) and words[0].text not in _BUILTINS
    return words[0].start if is_program else None


def _commands(script: str) -> Iterator[_Command]:
    """The simple commands in order. Raises ValueError for anything else, such as a subshell."""
    follows, words = "\n", list[_Word]()
    at = 0
    while at < len(script):
        token = _TOKEN.match(script, at)
        if token is None:
            raise ValueError(script[at:])
        kind, text = token.lastgroup, token[0]
        if kind == "word":
            _check_word(text)
        if kind == "operator" and text in _SEPARATORS:
            yield _Command(follows, words)
            follows, words = text, []
        elif kind == "operator" and text not in _REDIRECT:
            raise ValueError(text)
        elif kind != "blank":
            words.append(_Word(text, at))
        at = token.end()
    yield _Command(follows, words)


def _check_word(text: str) -> None:
    """Raises ValueError for a substitution in quotes or braces, which may contain quotes and separators."""
    quoted = [part[1] or "" for part in _QUOTED.finditer(text)]
    if text.count("{") != text.count("}") or any(map(_is_open, quoted)):
        raise ValueError(text)


def _is_open(quoted: str) -> bool:
    return quoted.count("(") != quoted.count(")") or "`" in quoted
