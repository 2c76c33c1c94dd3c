"""The parameters of a job: what its program was given by its command (`--lr 0.1`) and by variables (`LR=0.1`)."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfyard.formats.shell import script_at
from tfyard.model import Job, Manifest, tensorflow_container
from tfyard.model.expansion import expand
from tfyard.model.secrecy import is_secret, scrubbed_value, scrubbed_words
from tfyard.model.sweep import Values, value_text, variable_of
from tfyard.planner.leaders import leading_role

NONE: Mapping[str, str] = {}
LONGEST = 1000
"""Characters of a value; what is longer is a document, and is cut."""
MOST = 500
"""Number of parameters that are read."""
SET = "true"
"""Value of an option without one."""

_SEPARATORS = frozenset((";", "\n", "&&", "||", "&"))
_PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
_ENDS_COMMAND = re.compile(r"[()<>|&;\n]+")
_STREAM = re.compile(r"(?<=\s)\d(?=[<>])")
_OPTION = re.compile(r"--?(?P<name>[A-Za-z_][\w.\-]*)(=(?P<value>.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}(?P<name>[A-Za-z_][\w.\-/@]*)=(?P<value>.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def parameters(job: Job, variables: Mapping[str, str] = NONE) -> dict[str, str]:
    """The parameters of the task that decides the job, by name: those of its command as the program is given them
    (`--lr 0.1`, `--lr=0.1`, `model.depth=3`, and `true` for an option without a value), and the variables of its
    env. What looks like a secret is not among them, nor is a value that is taken from an object of the cluster.
    `variables`: those of `--env`, which win over the env."""
    container = decisive_container(job)
    env = plain_env(container) | {name: text for name, text in variables.items() if not is_secret(name, text)}
    pairs = [*env.items(), *_of_command(_program_words(container, env))]
    kept = ((name, value) for name, value in pairs if not is_secret(name, value))
    return dict([(name, scrubbed_value(name, value)[:LONGEST]) for name, value in kept][:MOST])


def with_values(known: Mapping[str, str], values: Values) -> dict[str, str]:
    """The parameters of a trial. Its values have the names that the sweep has for them, also those that a program
    is given by variables."""
    variables = set(map(variable_of, values))
    others = {name: text for name, text in known.items() if name not in variables}
    return others | {name: value_text(value) for name, value in values.items()}


def command(job: Job) -> tuple[str, ...]:
    """The command and the arguments of the task that decides the job, without what looks like a secret."""
    container = decisive_container(job)
    return tuple(scrubbed_words(expand(word, plain_env(container)) for word in _words(container)))


def decisive_container(job: Job) -> Manifest:
    """The container that trains, of the role that decides about success; empty: the job has no tasks."""
    role = leading_role(job)
    return tensorflow_container(role.template) if role else {}


def plain_env(container: Manifest) -> dict[str, str]:
    """The variables that stand in the container with their values, without what looks like a secret."""
    variables = [each for each in container.get("env") or () if "valueFrom" not in each]
    pairs = ((str(each.get("name") or ""), str(each.get("value") or "")) for each in variables)
    return {name: value for name, value in pairs if name and not is_secret(name, value)}


def _words(container: Manifest) -> list[str]:
    return [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]


def _program_words(container: Manifest, env: Mapping[str, str]) -> list[str]:
    """The words of the command that trains. Of a shell script, this is its last one that runs Python, else its
    last one."""
    words = [expand(word, env) for word in _words(container)]
    script = script_at(words)
    if script is None:
        return words
    commands = list(_commands(words[script]))
    of_python = [each for each in commands if any(map(_PYTHON.fullmatch, each))]
    last = (of_python or commands or [[]])[-1]
    return [_VARIABLE.sub(lambda match: env.get(match[1] or match[2], match[0]), word) for word in last]


def _commands(script: str) -> Iterator[list[str]]:
    """The words of each pipeline's first command, up to its first redirection."""
    words, is_open = list[str](), True
    for token in _tokens(script):
        if token in _SEPARATORS:
            if words:
                yield words
            words, is_open = [], True
        elif _ENDS_COMMAND.fullmatch(token):
            is_open = False
        elif is_open:
            words.append(token)
    if words:
        yield words


def _tokens(script: str) -> list[str]:
    joined = _STREAM.sub("", script.replace("\\\n", " "))
    lexer = shlex.shlex(joined, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:  # a quotation mark without its other one
        return joined.split()


def _of_command(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Assignments before the program (`LR=0.1 python …`), then what the program itself is given."""
    start = _first_argument(words)
    yield from _assignments(words[:start])
    at = start
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--":
            continue
        if match := _OPTION.fullmatch(word):
            values = [] if match["value"] is not None else _values(words[at:])
            at += len(values)
            yield match["name"], match["value"] if match["value"] is not None else " ".join(values) or SET
        elif match := _OVERRIDE.fullmatch(word):
            yield match["name"], match["value"]


def _assignments(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if match := _OVERRIDE.fullmatch(word):
            yield match["name"], match["value"]


def _first_argument(words: Sequence[str]) -> int:
    """Position after the program; for Python, after the script or the module, whose options these are."""
    python = next((at for at, word in enumerate(words) if _PYTHON.fullmatch(word)), None)
    if python is None:
        program = next((at for at, word in enumerate(words) if not _is_before_program(word)), len(words))
        return program + 1
    for at in range(python + 1, len(words)):
        if words[at] in ("-m", "-c"):
            return at + 2
        if not words[at].startswith("-") and words[at - 1] not in ("-W", "-X"):
            return at + 1
    return len(words)


def _is_before_program(word: str) -> bool:
    return word in ("exec", "env", "export", "nohup", "time") or _OVERRIDE.fullmatch(word) is not None


def _values(words: Sequence[str]) -> list[str]:
    """The values of an option: the next word, and, if that is a number, the numbers that follow it. A word that
    begins with a dash is the next option, unless it is a number."""
    if not words:
        return []
    if not _NUMBER.fullmatch(words[0]):
        return [] if words[0].startswith("-") and words[0] != "-" else [words[0]]
    count = next((at for at, word in enumerate(words) if not _NUMBER.fullmatch(word)), len(words))
    return list(words[:count])
