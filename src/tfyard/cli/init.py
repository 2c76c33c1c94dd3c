"""`tfyard init`: writes a commented job file to start from."""

from pathlib import Path

import click

from tfyard.cli import editor, files
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL, RULE, as_name
from tfyard.formats.writing import SCHEMA_LINE, to_yaml
from tfyard.model.names import DEFAULT_IMAGE

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


@click.command("init")
@click.argument("file", default="job.yaml")
@click.option("--name", help="Name of the job; default: the name of this folder.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def command(file: str, name: str | None, force: bool) -> None:
    """Write a commented job file to start from; `-` writes to standard output.

    \b
    Examples:
      tfyard init
      tfyard init train/job.yaml --name mnist
    """
    path = Path("job.yaml" if file == "-" else file)
    if file != "-" and path.exists() and not force:
        raise Usage(f"{file} exists; --force overwrites it")
    if not path.parent.is_dir():
        raise Usage(f"{path.parent}: folder not found")
    chosen = name or as_name(path.resolve().parent.name, "training")
    if not DNS_LABEL.fullmatch(chosen):
        raise Usage(f"--name {chosen}: {RULE}")
    line = to_yaml({"name": chosen}).strip()  # quoted if needed: a folder may be called `on`
    text = SCHEMA_LINE + TEMPLATE.format(file=path, name=line, image=DEFAULT_IMAGE)
    if file == "-":
        files.print_text(text)
        return
    files.write_text(file, text)
    editor.write_schema(file)
    click.echo(f"wrote {file}; next: tfyard validate {file}, then tfyard run {file}")
