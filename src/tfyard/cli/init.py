"""`tfyard init`: a commented job file to start from."""

from pathlib import Path

import click

from tfyard.cli import editor, files
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL, RULE, as_name
from tfyard.formats.writing import SCHEMA_LINE, to_yaml

TEMPLATE = """\
# A tfyard job. Run it here:      tfyard run {file}
#               check it:         tfyard validate {file}
#               what a word does: tfyard explain WORD
{name}
image: tensorflow/tensorflow:2.21.0   # for the cluster; not used on this machine
code: .                               # this folder; or a git or http(s) address; or leave it to the image
run: python train.py --steps 1000     # a text is a shell line, a list is executed as it is
worker: 2                             # the tasks that train; worker 0 leads where there is no chief
# chief: 1                            # leads and checkpoints; the job ends when it ends
# ps: 1                               # parameter servers
# evaluator: 1                        # judges checkpoints beside the training
# worker: {{count: 4, gpu: 1, cpu: 4, memory: 8Gi, restart: exit-code}}

# volumes:                            # what must outlive the containers
#   out: {{claim: training, size: 5Gi, at: /out}}
# env: {{LEARNING_RATE: 0.01}}
# tensorboard: /out/logs
# deadline: 2h                        # fail when it runs longer
# retries: 3                          # how many restarts are allowed
# keepFor: 1d                         # delete it this long after its end
# overlay: {{spec: {{priorityClassName: high}}}}   # anything that Kubernetes has and this file has no word for
"""


@click.command("init")
@click.argument("file", default="job.yaml")
@click.option("--name", help="Name of the job; default: that of this folder.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def command(file: str, name: str | None, force: bool) -> None:
    """Write a commented job file to start from."""
    path = Path(file)
    if path.exists() and not force:
        raise Usage(f"{file} exists; --force overwrites it")
    if not path.parent.is_dir():
        raise Usage(f"{path.parent}: there is no such folder")
    chosen = name or as_name(path.resolve().parent.name, "training")
    if not DNS_LABEL.fullmatch(chosen):
        raise Usage(f"--name {chosen}: {RULE}")
    line = to_yaml({"name": chosen}).strip()  # quoted where it must be: a folder may be called `on`
    files.write_text(file, SCHEMA_LINE + TEMPLATE.format(file=file, name=line))
    editor.write_schema(file)
    click.echo(f"wrote {file}; next: tfyard validate {file}, then tfyard run {file}")
