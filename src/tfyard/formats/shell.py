"""`run` as text is a shell script. If it ends with a program, `exec` is added: the program replaces the shell.

Without `exec`, the shell would get the signal to stop and not pass it on: the program would be killed after the
grace period, without time to write its last checkpoint.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tfyard.model.expansion import escape, expand

SHELL = ["/bin/sh", "-c"]

_SHELLS = re.compile(r"(.*/)?(ba|da|z|k)?sh")
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_NAMING_OPTION = re.compile(r"[-+][a-zA-Z]*[oO]|--(rcfile|init-file)")
"""Options of a shell after which a word belongs to them."""
_HERE_DOCUMENT = re.compile(r"<<(?P<tabs>-?)(?!<)[ \t]*(['\"\\]?)(?P<word>[\w.-]+)\2")

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


def script_at(words: Sequence[str]) -> int | None:
    """The position of the script, if these words run a shell with `-c`, as in `bash -o pipefail -c SCRIPT` or
    `tini -- sh -c SCRIPT`."""
    shell = next((at for at, word in enumerate(words) if _SHELLS.fullmatch(word)), len(words))
    at, is_script = shell + 1, False
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] != "--":
        is_script = is_script or _SCRIPT_OPTION.fullmatch(words[at]) is not None
        at += 2 if _NAMING_OPTION.fullmatch(words[at]) else 1
    at += words[at : at + 1] == ["--"]
    return at if is_script and at < len(words) else None


def quotation_at(script: str, at: int) -> str | None:
    """The quotation mark that is open at this place of a script; empty: none is. None: quoting protects no text
    there, because it is a comment, a here-document, or in backticks."""
    opened, documents, position = list[str](), list[re.Match[str]](), 0
    while position < at:
        inner, mark = opened[-1] if opened else "", script[position]
        if here := _HERE_DOCUMENT.match(script, position) if inner in _PLAIN else None:
            documents.append(here)
            position = here.end() - 1
        elif mark == "\n" and documents and inner in (*_PLAIN, "#"):
            position = max(_end_of(document, script, position) for document in documents) - 1
            opened, documents = [each for each in opened if each != "#"], []
        elif mark == "\\" and inner not in ("'", "#"):
            position += 1
        else:
            _open_or_close(opened, mark, script[position - 1 : position])
        position += 1
    is_protected = position == at and not {"`", "#", "$'"} & {*opened}
    return "".join(opened[-1:]).strip("(") if is_protected else None


def _open_or_close(opened: list[str], mark: str, before: str) -> None:
    """Changes the stack of what is open at a character of a script. In a substitution, quoting begins anew."""
    inner = opened[-1] if opened else ""
    if mark == _CLOSED_BY.get(inner):
        opened.pop()
    elif inner in ("'", "$'", "#"):
        return
    elif mark == "`" and mark in opened:
        del opened[opened.index(mark) :]
    elif mark in '"`' or (mark == "(" and (inner != '"' or before == "$")):
        opened.append(mark)
    elif mark == "'" and inner != '"':
        opened.append("$'" if before == "$" else "'")
    elif mark == "#" and inner != '"' and (not before.strip() or before in ";&|()`"):
        opened.append(mark)


_CLOSED_BY = {"'": "'", '"': '"', "(": ")", "`": "`", "$'": "'", "#": "\n"}
_PLAIN = ("", "(")
"""What is open where operators are read as such."""


def _end_of(document: re.Match[str], script: str, start: int) -> int:
    """Position after the last line of a here-document whose first line begins after `start`."""
    tabs = r"\t*" if document["tabs"] else ""
    last = re.compile(rf"^{tabs}{re.escape(document['word'])}$", re.MULTILINE).search(script, start + 1)
    return last.end() if last else len(script)


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
