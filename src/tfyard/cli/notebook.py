"""`tfyard notebook`: a Jupyter server for a job."""

import os
import sys
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any

import click
from msgspec.structs import replace

from tfyard.cli import cluster, files, interrupts, offers, target, web_session
from tfyard.errors import Usage
from tfyard.formats.metadata import DNS_LABEL
from tfyard.model import Job
from tfyard.model.names import MAX_LABEL
from tfyard.render import FORMS, RenderOptions, notebook, to_yaml
from tfyard.sdk.pages import Page
from tfyard.sdk.place import NotebookOptions


class _OpenByDefault(click.Group):
    """`tfyard notebook JOB` is `tfyard notebook open JOB`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["open", *args]
        return super().resolve_command(ctx, args)


@click.group("notebook", cls=_OpenByDefault, subcommand_metavar="JOB [OPTIONS] | COMMAND [ARGS]...")
def command() -> None:
    """A Jupyter server for a job, with its volumes and the addresses of its tasks.

    `tfyard notebook JOB` opens one in the browser, `tfyard notebook render` writes its manifests.
    """


@command.command("open")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--image", default=notebook.DEFAULT_IMAGE, show_default=True, help="Image with Jupyter.")
@click.option("--password-file", metavar="FILE", help="Read the password from this file of one line.")
@click.option("--password-env", metavar="NAME", help="Take the password from this environment variable.")
@web_session.options(notebook.PORT)
@cluster.helper_user_option
@cluster.job_options
def open_(name: str, image: str, **options: Any) -> None:
    """Open Jupyter for a job in the browser, until Ctrl-C, or --idle passes without a request.

    A server that `tfyard notebook render` made for the job is forwarded to a local port. Otherwise a short-lived
    pod starts Jupyter with the claims of the job where its tasks have them, and with CLUSTER_CONFIG, the addresses
    of its tasks. The pod is deleted when this command ends; notebooks on a claim stay. Without --password-file and
    --password-env, a password is generated and printed once.

    \b
    Examples:
      tfyard notebook mnist
      tfyard notebook mnist --image my/jupyter:1 --idle 2h
    """
    show = web_session.read(options)
    user, sources = options.pop("helper_user"), (options.pop("password_file"), options.pop("password_env"))
    place = target.find(name, options)
    password = _password(*sources) if any(sources) else ""
    wanted = NotebookOptions(image=image, password=password, user=user)
    making = place.notebook(wanted, show.here(notebook.PORT))
    notebook.import_argon2()
    interrupts.run(_show(making, show))


async def _show(making: AbstractAsyncContextManager[Page], wanted: web_session.PageOptions) -> None:
    async with making as page:
        await web_session.show([page], wanted)


@command.command("render")
@click.argument("file", metavar="[FILE]", required=False)
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    default="tfjob",
    help="Form in which the job was rendered, as for `tfyard render --as`.",
)
@click.option("--name", help="Name of the server; default: <job>-jupyter, or jupyter without a job.")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace; default: the job's own.")
@click.option("--image", default=notebook.DEFAULT_IMAGE, show_default=True, help="Image with Jupyter.")
@click.option(
    "--service-type",
    type=click.Choice(["ClusterIP", "NodePort", "LoadBalancer"]),
    default="ClusterIP",
    show_default=True,
    help="ClusterIP needs kubectl port-forward; the others are reachable from outside.",
)
@click.option("--password-file", metavar="FILE", help="Read the password from this file of one line.")
@click.option("--password-env", metavar="NAME", help="Take the password from this environment variable.")
@click.option(
    "--domain", default="", metavar="NAME", help="Cluster domain of addresses, such as cluster.local."
)
@click.option("--explain", is_flag=True, help="Add comments that say where each object comes from.")
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of standard output.")
def render(file: str | None, output: str | None, explain: bool, **options: Any) -> None:
    """Write the manifests of a Jupyter server.

    FILE is the job that the notebook uses: the server gets the job's volumes, CLUSTER_CONFIG and, if the job
    has no chief, a TF_CONFIG that makes the notebook the chief. The command asks for a password unless it comes
    from a file or a variable; only its hash is written.

    \b
    Examples:
      tfyard notebook render job.yaml --password-file password.txt | kubectl apply -f -
    """
    files.refuse_input(output, [file] if file else [], "choose another name")
    notebook.import_argon2()  # before a password is asked for
    password = _password(options["password_file"], options["password_env"])
    server = _server(_job(file, options["namespace"]), options)
    server = replace(server, hashed=notebook.hash_password(password, server.namespace, server.name))
    files.write_output(output, to_yaml(notebook.render(server), explain=explain))
    for sentence in notebook.how_to_reach(server.name, server.namespace, server.service_type):
        click.echo(f"tfyard: {sentence}", err=True)


def _job(file: str | None, namespace: str | None) -> Job | None:
    if file is None:
        return None
    documents = files.read_jobs(file)
    if len(documents) > 1:
        raise Usage(f"{file} has {len(documents)} jobs; a notebook uses one")
    return files.load(documents[0], namespace=namespace)


def _server(job: Job | None, options: dict[str, Any]) -> notebook.Server:
    name = options["name"] or (f"{job.name}-jupyter" if job else "jupyter")
    if not DNS_LABEL.fullmatch(name) or len(name) > MAX_LABEL:
        raise Usage(f"{name}: must be at most {MAX_LABEL} lower-case letters, digits and '-'; see --name")
    server = notebook.Server(
        name=name,
        namespace=job.namespace if job else options["namespace"] or "default",
        image=options["image"],
        service_type=options["service_type"],
    )
    if job is None:
        return server
    module = import_module(f"tfyard.render.{options['form']}")
    return notebook.for_job(server, job, module.hosts(job, RenderOptions(domain=options["domain"])))


def _password(file: str | None, variable: str | None) -> str:
    """The password, from a prompt, file or variable; arguments can be read by every user of the machine."""
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
        raise Usage("a password is needed: use --password-file FILE, --password-env NAME, or a terminal")
    if not password or "\n" in password:
        raise Usage("the password must be one line, not empty")
    return password
