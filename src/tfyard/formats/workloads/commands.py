"""Changes a task's command so that all tasks of its role can share it: hosts and index come from variables, code
is fetched before the program starts, and the output goes to the log."""

import re

from msgspec import Struct

from tfyard.formats import shell
from tfyard.model import TENSORFLOW_CONTAINER, Code, Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import CLUSTER_VARIABLE

HOSTS = {"PS_KEY": "PS_HOSTS", "WORKER_KEY": "WORKER_HOSTS"}
"""Variables of old clusters with a list of hosts -> those that tfyard sets."""
OURS = (
    *HOSTS,
    "TF_CONFIG",
    "CLUSTER_CONFIG",
    CLUSTER_VARIABLE,
    "PS_HOSTS",
    "WORKER_HOSTS",
    "JOB_NAME",
    "TASK_INDEX",
)
"""Variables about the cluster, which are removed: their addresses would be those of the old Services."""
COMPLETION_INDEX = {"name": "JOB_COMPLETION_INDEX", "value": "$(TASK_INDEX)"}
"""The variable from which pods of an Indexed Job read their index."""

_WORD = r"""(?:\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|`[^`]*`|"[^"]*"|'[^']*'|[^\s;|&<>"'`])+"""
"""A word of the shell, including substitutions in it."""
_ROLE = r"(?:chief|worker|ps|evaluator)(?![-\w])"
"""Values of `--job_name` to replace. Other programs have this flag, too, and `master` may be `chief` now."""
_FLAGS = {
    "PS_HOSTS": r"--ps[-_]hosts",
    "WORKER_HOSTS": r"--worker[-_]hosts",
    "JOB_NAME": r"--job[-_]name",
    "TASK_INDEX": r"--task[-_](?:index|id)",
}
_REDIRECTION = re.compile(r"(?:[ \t]+(?:[12&]?>>?[ \t]*[^\s;|&>]+|2>&1))+\s*$")
_FETCH = re.compile(
    r"curl\s+(?:-\S+\s+)*(?P<url>\S+?)\s*>\s*(?P<file>\S+?)\s*;\s*unzip\s+(?:-\S+\s+)*(?P=file)\s*;"
    r"\s*cd\s+(?P<folder>[^\s;]+?)/?\s*;\s*(?P<rest>.+)",
    re.DOTALL,
)
_PLAIN_SHELL = ("sh", "/bin/sh")
_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
_PARTS = ("name", "command", "args", "env", "ports")


class Program(Struct, frozen=True):
    container: Manifest
    code: Code | None = None


def words(container: Manifest) -> list[str]:
    return [str(word) for word in [*(container.get("command") or []), *(container.get("args") or [])]]


def modern(container: Manifest, say: Say) -> Program:
    """The container of a role, made from that of one of its tasks."""
    command, kept = words(container), {k: v for k, v in container.items() if k not in _PARTS}
    code = None
    if container.get("command") and _is_script(command):
        line, code, workdir = _line(command[2], say)
        kept |= {"command": _script(command[0], line), **({"workingDir": workdir} if workdir else {})}
    elif container.get("command"):
        kept["command"] = _with_variables(command)
    elif command:
        kept["args"] = _with_variables(command)  # for the entrypoint of the image
    env = [entry for entry in container.get("env") or [] if entry["name"] not in OURS]
    _say_env(container, say)
    return Program({"name": TENSORFLOW_CONTAINER, **kept, **({"env": env} if env else {})}, code)


def numbered(container: Manifest, name: str, span: tuple[int, int]) -> Manifest:
    """The container with a variable for the index in the task's name, as in `logs/worker-1.txt`."""
    own = re.compile(rf"(?<![-\w]){re.escape(name)}(?![-\w])")

    def put(text: str, index: str) -> str:
        return own.sub(lambda _: name[: span[0]] + index + name[span[1] :], text)

    replaced = {**container}
    form = "${TASK_INDEX}" if _is_script(words(container)) else "$(TASK_INDEX)"
    for key in ("command", "args"):
        replaced |= {key: [put(str(word), form) for word in container[key]]} if container.get(key) else {}
    env = [
        {**e, **({"value": put(e["value"], "$(TASK_INDEX)")} if e.get("value") else {})}
        for e in container.get("env") or []
    ]
    return {**replaced, **({"env": env} if env else {})}


def flag_values(command: list[str]) -> dict[str, str]:
    """PS_HOSTS and WORKER_HOSTS -> the value of the program's flag, as written."""
    text = " ".join(command)
    matches = {
        name: re.search(rf"{_FLAGS[name]}[= ][\"']?([^\s;|&<>\"'`]*)", text) for name in HOSTS.values()
    }
    return {name: match[1] for name, match in matches.items() if match}


def _is_script(command: list[str]) -> bool:
    return len(command) == 3 and command[1] == "-c" and command[0].rpartition("/")[2] in _SHELLS


def _script(program: str, line: str) -> list[str]:
    return [*shell.SHELL, shell.with_exec(line)] if program in _PLAIN_SHELL else [program, "-c", line]


def _line(text: str, say: Say) -> tuple[str, Code | None, str]:
    text = text.strip()  # nothing inside is changed: line breaks, and spaces in quotes, have a meaning
    line = _REDIRECTION.sub("", text)
    if line != text:
        say(f"redirection `{text[len(line) :].strip()}` removed: the output goes to the log")
    line = _replaced(line, "${}")
    fetch = _FETCH.fullmatch(line)
    if fetch is None:
        return line, None, ""
    say("`curl` and `unzip` in the command replaced by `code`, which is fetched before the program starts")
    code = Code(kind="http", source=fetch["url"])
    inner = fetch["folder"].partition("/")[2]
    return fetch["rest"].strip(), code, f"{code.at}/{inner}" if inner else code.at


def _with_variables(command: list[str]) -> list[str]:
    """A command without a shell gets `$(NAME)`, which the kubelet expands; a flag's value may be the next word."""
    replaced = []
    for before, word in zip(["", *command], command, strict=False):
        replaced.append(_value_after(before, word) or _replaced(word, "$({})"))
    return replaced


def _value_after(flag: str, word: str) -> str | None:
    for name, pattern in _FLAGS.items():
        if re.fullmatch(pattern, flag) and (name != "JOB_NAME" or re.fullmatch(_ROLE, word)):
            return f"$({name})"
    return None


def _replaced(text: str, form: str) -> str:
    for old, name in HOSTS.items():
        text = text.replace(f"$({old})", form.format(name))
    for name, flag in _FLAGS.items():
        text = _flag_replaced(text, flag, form.format(name), is_role=name == "JOB_NAME")
    return text


def _flag_replaced(text: str, flag: str, new: str, *, is_role: bool) -> str:
    """A flag may be quoted as a whole; the shell expands variables only in double quotes."""
    inside, alone = (_ROLE, rf"[\"']?{_ROLE}[\"']?") if is_role else (r"[^\"']*", _WORD)
    quoted = rf"(?P<quote>[\"'])(?P<inside>{flag}=){inside}(?P=quote)"
    plain = rf"(?P<bare>{flag}[= ]){alone}"

    def put(match: re.Match[str]) -> str:
        return f"{match['bare']}{new}" if match["bare"] else f'"{match["inside"]}{new}"'

    return re.sub(f"{quoted}|{plain}", put, text)


def _say_env(container: Manifest, say: Say) -> None:
    """Remarks about removed variables that programs may read."""
    names = {entry["name"] for entry in container.get("env") or []}
    if "TF_CONFIG" in names:
        say("TF_CONFIG removed: tfyard sets it for every task")
    if "CLUSTER_CONFIG" in names:
        say("CLUSTER_CONFIG removed: programs find the cluster, and their own role and index, in TF_CONFIG")
