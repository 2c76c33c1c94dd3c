"""`tfyard init`: writes a commented job file, or sweep file, to start from."""

import os
import re
from pathlib import Path

import click

from tfyard.cli import editor, files
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL, RULE, as_name
from tfyard.formats.sweepfile import filling
from tfyard.formats.writing import SCHEMA_LINE, SWEEP_SCHEMA_LINE, to_yaml
from tfyard.job_input import sweeps
from tfyard.model import Job
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.overview.parameters import parameters

TEMPLATE = """\
# A tfyard job. Run it here:      tfyard run {file}
#               check it:         tfyard validate {file}
#               what a word does: tfyard explain WORD
{name}
image: {image}   # for the cluster; not used on this machine
code: .                               # this folder, a git or http(s) URL; without it, the code is in the image
run: python train.py --steps 1000     # text is run by a shell, a list is executed as it is
worker: 2                             # the tasks that train; without a chief, worker 0 leads
# chief: 1                            # leads and writes checkpoints; the job ends when it ends
# ps: 1                               # parameter servers
# evaluator: 1                        # evaluates checkpoints during the training
# worker: {{count: 4, gpu: 1, cpu: 4, memory: 8Gi, restart: exit-code}}

# volumes:                            # storage that outlives the containers
#   out: {{claim: training, size: 5Gi, at: /out}}
# env: {{LEARNING_RATE: 0.01}}
# tensorboard: /out/logs
# deadline: 2h                        # the job fails if it runs longer
# retries: 3                          # number of restarts that are allowed
# keepFor: 1d                         # the job is deleted this long after it has ended
# overlay: {{spec: {{priorityClassName: high}}}}   # any other field of the pod template
"""


SWEEP_TEMPLATE = """\
# One job, run many times with other values.   Run it here:      tfyard sweep {file}
#                                              check it:         tfyard validate {file}
#                                              what a word does: tfyard explain sweep.WORD
{name}
{job}
{note}
over:
{over}
# batch: [32, 64, 128]                # these values
# layers: {{from: 1, to: 4}}            # whole numbers
objective: max accuracy               # a metric that the program prints; `min best loss`: a trial's best value
trials: 24
# parallel: 4                         # trials at once; default: as many as fit this machine
# sampler: random                     # grid, random, or tpe, which learns from earlier trials (tfyard[sweep])
# prune: median                       # or asha: stops trials that are worse than the others at the same step
# seed: 1                             # chooses the same values again
# deadline: 6h                        # time for the whole sweep
# retryTrials: 1                      # how often a trial that has failed is tried again
"""
RANGE = "{from: 1e-4, to: 1e-1, log: true}"
_TUNED = re.compile(
    r"(.*_)?(lr|rate|batch|batch_size|hidden|units|layers|dropout|momentum|decay)", re.IGNORECASE
)
"""Names of parameters that people search; the number of steps is not among them."""
MOST = 3


@click.command("init")
@click.argument("file", required=False)
@click.option("--sweep", is_flag=True, help="Write a sweep file; FILE is sweep.yaml by default.")
@click.option(
    "--job", metavar="FILE", help="Job or script of the sweep; default: job.yaml, or the only script here."
)
@click.option(
    "--name", help="Name of the job or sweep; default: that of this folder, or of the job with -sweep."
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def command(file: str | None, sweep: bool, job: str | None, name: str | None, force: bool) -> None:
    """Write a commented job file to start from, or a sweep file for a job; `-` writes to standard output.

    \b
    Examples:
      tfyard init
      tfyard init train/job.yaml --name mnist
      tfyard init --sweep
      tfyard init --sweep lr.yaml --job train.py
    """
    if job is not None and not sweep:
        raise Usage("--job is for --sweep")
    usual = "sweep.yaml" if sweep else "job.yaml"
    file = file or usual
    path = Path(usual if file == "-" else file)
    if file != "-" and path.exists() and not force:
        raise Usage(f"{file} exists; --force overwrites it")
    if not path.parent.is_dir():
        raise Usage(f"{path.parent}: folder not found")
    if name is not None and not DNS_LABEL.fullmatch(name):
        raise Usage(f"--name {name}: {RULE}")
    text = _sweep_text(path, job, name) if sweep else _job_text(path, name)
    if file == "-":
        files.print_text(text)
        return
    files.write_text(file, text)
    editor.write_schema(file, "sweepfile" if sweep else "jobfile")
    click.echo(
        f"wrote {file}; next: tfyard validate {file}, then tfyard {'sweep' if sweep else 'run'} {file}"
    )


def _job_text(path: Path, name: str | None) -> str:
    chosen = name or as_name(path.resolve().parent.name, "training")
    line = to_yaml({"name": chosen}).strip()  # quoted if needed: a folder may be called `on`
    return SCHEMA_LINE + TEMPLATE.format(file=path, name=line, image=DEFAULT_IMAGE)


# --- a sweep of a job that exists


def _sweep_text(path: Path, job: str | None, name: str | None) -> str:
    """The text of a sweep file at this path."""
    target = _target(path.parent) if job is None else job
    loaded, _ = sweeps.job(target)
    relative = os.path.relpath(target, path.parent)
    over, note = _guessed(loaded, relative)
    return SWEEP_SCHEMA_LINE + SWEEP_TEMPLATE.format(
        file=path,
        name=to_yaml({"name": name or as_name(f"{loaded.name}-sweep")}).strip(),
        job=to_yaml({"job": relative}).strip(),
        note=f"# {note}",
        over="\n".join(f"  {parameter}: {words}" for parameter, words in over.items()),
    )


def _target(folder: Path) -> str:
    if (folder / "job.yaml").is_file():
        return str(folder / "job.yaml")
    scripts = sorted(folder.glob("*.py"))
    if len(scripts) != 1:
        here = f"{len(scripts)} scripts and no job.yaml" if scripts else "neither a job.yaml nor a script"
        raise Usage(
            f"{folder} has {here}; name the job of the sweep, as in `tfyard init --sweep --job train.py`"
        )
    return str(scripts[0])


def _guessed(job: Job, file: str) -> tuple[dict[str, str], str]:
    """Parameters with the words of their values, and what the user must know of them."""
    if named := sorted(filter(_TUNED.fullmatch, filling.placeholders(job))):
        return dict.fromkeys(named, RANGE), f"{file} names its parameters in braces, as in {{{named[0]}}}"
    pairs = [(name, value) for name, value in parameters(job).items() if _TUNED.fullmatch(_as_name(name))]
    ranges = {_as_name(name): words for name, value in pairs if (words := _around(value))}
    if not ranges:
        return {
            "lr": RANGE
        }, f"{{lr}} in {file} stands for the value of lr; else the program has a variable LR"
    option, value = next((name, value) for name, value in pairs if _around(value))
    parameter = _as_name(option)
    if parameter.upper() == option:
        return dict([*ranges.items()][:MOST]), f"each trial has its own value of the variable {option}"
    return dict(
        [*ranges.items()][:MOST]
    ), f"write --{option} {{{parameter}}} into {file}, in place of --{option} {value}"


def _as_name(option: str) -> str:
    return re.sub(r"\W", "_", option, flags=re.ASCII).lower()


def _around(value: str) -> str:
    """A range around a number that the job has now; empty: it is no number, or none to search around."""
    try:
        number = float(value)
    except ValueError:
        return ""
    if number <= 0 or number > 1e9:
        return ""
    if value.isdigit():
        return f"{{from: {max(1, int(value) // 4)}, to: {int(value) * 4}}}"
    return f"{{from: {number / 10:g}, to: {number * 10:g}, log: true}}"
