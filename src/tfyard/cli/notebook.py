"""`tfyard notebook`: a Jupyter server beside a job."""

import os
import sys
from importlib import import_module
from typing import Any

import click
from msgspec.structs import replace

from tfyard.cli import files
from tfyard.cli.render import FORMS, checked_job, moved
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL
from tfyard.model import Job
from tfyard.model.names import MAX_LABEL
from tfyard.render import Setting, notebook, text


@click.group("notebook")
def command() -> None:
    """A Jupyter server beside a job, with its volumes and its cluster at hand."""


@command.command("render")
@click.argument("file", metavar="[FILE]", required=False)
@click.option(
    "--as", "form", type=click.Choice(FORMS), default="tfjob", help="How the job itself was rendered."
)
@click.option("--name", help="Name of the server; default: <job>-jupyter, without a job jupyter.")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace; default: the job's own.")
@click.option("--image", default=notebook.DEFAULT_IMAGE, show_default=True, help="An image with Jupyter.")
@click.option(
    "--service-type",
    type=click.Choice(["ClusterIP", "NodePort", "LoadBalancer"]),
    default="ClusterIP",
    show_default=True,
    help="ClusterIP is reached with kubectl port-forward; the others from outside.",
)
@click.option("--password-file", metavar="FILE", help="Read the password's only line from here.")
@click.option("--password-env", metavar="NAME", help="Take the password from this environment variable.")
@click.option(
    "--domain", default="", metavar="NAME", help="Cluster domain of addresses, such as cluster.local."
)
@click.option("--explain", is_flag=True, help="Add comments that say where each thing came from.")
@click.option("-o", "--output", metavar="FILE", help="Write here instead of to standard output.")
def render(file: str | None, output: str | None, explain: bool, **options: Any) -> None:
    """Write the manifests of a Jupyter server.

    FILE is the job that it stands beside: the server gets the job's volumes, CLUSTER_CONFIG and, where the job
    has no chief, a TF_CONFIG that makes the notebook the chief. The password is asked for unless it comes
    from a file or a variable; only its hash is written.
    """
    files.refuse_input(output, [file] if file else [], "choose another name")
    notebook.import_argon2()  # before a password is asked for
    password = _password(options["password_file"], options["password_env"])
    server = _server(_job(file, options["namespace"]), options)
    server = replace(server, hashed=notebook.hash_password(password, server.namespace, server.name))
    body = text(notebook.render(server), explain=explain)
    if output is None:
        files.print_text(body)
    else:
        files.write_text(output, body)
    for sentence in notebook.how_to_reach(server.name, server.namespace, server.service_type):
        click.echo(f"tfyard: {sentence}", err=True)


def _job(file: str | None, namespace: str | None) -> Job | None:
    if file is None:
        return None
    documents = files.read_jobs(file)
    if len(documents) > 1:
        raise Usage(f"{file} has {len(documents)} jobs; a notebook stands beside one")
    job = checked_job(documents[0])
    return moved(job, namespace) if namespace else job


def _server(job: Job | None, options: dict[str, Any]) -> notebook.Server:
    name = options["name"] or (f"{job.name}-jupyter" if job else "jupyter")
    if not DNS_LABEL.fullmatch(name) or len(name) > MAX_LABEL:
        raise Usage(f"{name}: must be at most {MAX_LABEL} lower-case letters, digits and '-'; see --name")
    base = notebook.Server(
        name=name,
        namespace=job.namespace if job else options["namespace"] or "default",
        image=options["image"],
        service_type=options["service_type"],
    )
    if job is None:
        return base
    from tfyard.render import job_notebook

    room = import_module(f"tfyard.render.{options['form']}")
    return job_notebook.server(job, room.hosts(job, Setting(domain=options["domain"])), base)


def _password(file: str | None, variable: str | None) -> str:
    """By prompt, file or environment; never as an argument, which every user of a machine can read."""
    if file and variable:
        raise Usage("give --password-file or --password-env, not both")
    if file:
        password = files.read_bytes(file).decode("utf-8", errors="replace").rstrip("\r\n")
    elif variable:
        password = os.environ.get(variable, "")
    elif sys.stdin.isatty():
        password = str(
            click.prompt("Password for Jupyter", hide_input=True, confirmation_prompt=True, err=True)
        )
    else:
        raise Usage(
            "a password is needed: --password-file FILE, --password-env NAME, or a terminal to ask at"
        )
    if not password or "\n" in password:
        raise Usage("the password must be one line, and not empty")
    return password
