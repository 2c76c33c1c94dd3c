"""`%%tfyard`: runs a notebook's cell as a job on this machine.

Tasks read their program when they start, and again when they are restarted, so each run has a copy of its own in
its directory: another cell never changes it.

%load_ext tfyard

%%tfyard worker=2 ps=1
import tensorflow as tf
...
"""

import argparse
import os
import shlex
from pathlib import Path
from typing import Any, NoReturn, get_args

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.job_input.options import pair, replicas
from tfyard.local.settings import SOURCE_VARIABLE
from tfyard.model.expansion import escape
from tfyard.model.spelling import did_you_mean
from tfyard.sdk.functions import run
from tfyard.sdk.job import Job
from tfyard.sdk.run import Run
from tfyard.sdk.words import OF_CELLS, Restart

PROGRAM = "cell.py"
"""Name of the program of a cell that names no file."""
HEADER = "# Written by a notebook, from the cell %%tfyard"
OF_RUN = {"python", "mount", "tensorboard", "metric", "share_gpus", "kill"}
"""Options that become arguments of `run`."""
USAGE = """%%tfyard [FILE.py] [WORD=VALUE ...] [OPTION ...] [--background] [-- ARGUMENT ...]

Run the cell on this machine, each task as a real process. Its lines are printed until it ends; interrupting the
cell stops the run. The value of the cell is the Run, which keeps its own copy of the cell in the folder `source`.
With FILE.py, the cell is written to that file, too. OPTION is one of `tfyard run`: --chief N, --worker N, --ps N,
--evaluator N, --set ROLE=N, --env K=V, --name, --restart, --retries, --deadline, --memory, --tf1, --python,
--mount, --tensorboard, --metric, --share-gpus, --kill.

    %%tfyard worker=2                            two workers
    %%tfyard train.py worker=2 --env LR=0.01     written to train.py; LR is set for each task
    %%tfyard memory=4Gi -- --steps 100           a limit for each task, and arguments of the program
    %%tfyard --worker 2 --kill worker-1@30s      the options of `tfyard run`
    %%tfyard --background                        do not wait; the cell shows a live card
"""


class Cell(Struct, frozen=True, kw_only=True):
    """The options in the first line of a cell."""

    file: str = ""
    """The file to write the cell to; empty: none."""
    words: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    """Arguments of `run`."""
    is_background: bool = False


def load(shell: Any) -> None:
    """Called by `%load_ext tfyard`."""

    def tfyard(line: str, cell: str) -> Run:
        return _run(line, cell)

    tfyard.__doc__ = USAGE
    shell.register_magic_function(tfyard, magic_kind="cell")


def _run(line: str, cell: str) -> Run:
    options = read(line)
    text = f"{HEADER} {line.strip()}\n{cell}"
    if options.file:
        _write(Path(options.file), text)
    started = run(_job(options, text), **options.settings)
    if options.is_background:
        return started
    try:
        for entry in started.logs(follow=True):
            print(f"{entry.task} │ {entry.text}")
    except KeyboardInterrupt:
        started.stop()
        raise
    return started.wait()


def _job(cell: Cell, text: str) -> Job:
    """The job of a cell. Its program is in the directory of the run, and finds the modules of this folder by
    PYTHONPATH, as a script in this folder would."""
    name, here = Path(cell.file or PROGRAM).name, str(Path.cwd())
    words, env = {**cell.words}, dict(cell.words.get("env", {}))
    others = env.get("PYTHONPATH") or escape(os.environ.get("PYTHONPATH", ""))
    job = Job(
        run=["python", f"$({SOURCE_VARIABLE})/{escape(name)}", *map(escape, words.pop("args", ()))],
        workdir=here,
        **{**words, "env": {**env, "PYTHONPATH": os.pathsep.join(filter(None, (escape(here), others)))}},
    )
    job.source = replace(job.source, files={name: text})
    return job


def _write(path: Path, text: str) -> None:
    """Write the cell to a file. The header stands for the first line of the cell, so line numbers are the same."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(HEADER):
        raise Usage(f"%%tfyard: {path} exists, and was not written by a cell; choose another name")
    path.write_text(text, encoding="utf-8")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(f"%%tfyard: {message}; %%tfyard? shows all")


def _parser() -> _Parser:
    """The options of `tfyard run` that a cell can have: the others are about files and terminals."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for role in ("chief", "worker", "ps", "evaluator"):
        parser.add_argument(f"--{role}", type=int)
    parser.add_argument("--restart", choices=get_args(Restart))
    parser.add_argument("--retries", type=int)
    for name in ("name", "deadline", "memory", "python", "metric"):
        parser.add_argument(f"--{name}")
    for name in ("env", "set", "mount", "kill"):
        parser.add_argument(f"--{name}", action="append")
    for name in ("tf1", "share-gpus", "background"):
        parser.add_argument(f"--{name}", action="store_true", default=None)
    parser.add_argument("--tensorboard", nargs="?", const=True)
    return parser


def read(line: str) -> Cell:
    """Parse the first line of a cell; raises Usage."""
    all_words = shlex.split(line)
    end = all_words.index("--") if "--" in all_words else len(all_words)
    parsed = vars(_parser().parse_intermixed_args(all_words[:end]))
    asked = {name: value for name, value in parsed.items() if value is not None}
    files = [word for word in asked["words"] if word.endswith(".py") and "=" not in word]
    words: dict[str, Any] = dict(_word(word) for word in asked["words"] if word not in files[:1])
    words |= {name.lower(): count for name, count in map(replicas, asked.get("set", ()))}
    words |= {name: asked[name] for name in asked.keys() & {*OF_CELLS, "tf1"}}
    words |= {"env": dict(map(_variable, asked["env"]))} if "env" in asked else {}
    words |= {"args": all_words[end + 1 :]} if all_words[end + 1 :] else {}
    settings = {name: asked[name] for name in asked.keys() & OF_RUN}
    if "mount" in settings:
        settings["mount"] = dict(pair(text, "--mount") for text in settings["mount"])
    return Cell(
        file=files[0] if files else "",
        words=words,
        settings=settings,
        is_background=asked.get("background", False),
    )


def _word(text: str) -> tuple[str, str | int]:
    name, sign, value = text.partition("=")
    if not sign or name not in OF_CELLS:
        raise Usage(f"%%tfyard {text}: unknown word; {did_you_mean(name, OF_CELLS)}; %%tfyard? shows all")
    return name, int(value) if value.isdigit() else value


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise Usage(f"%%tfyard --env {text}: must be NAME=VALUE")
    return name, value
