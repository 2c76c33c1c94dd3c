"""`tfyard tensorboard`: shows the summaries of jobs in the browser."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import click

from tfyard.cli import cluster, interrupts, offers, target, web_session
from tfyard.cli.web_session import PageOptions
from tfyard.model.names import TENSORBOARD_PORT
from tfyard.sdk.pages import Page, boards
from tfyard.sdk.place import HelperOptions


@click.command("tensorboard")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=offers.jobs)
@click.option("--logdir", default="", metavar="DIR", help="Folder of the summaries, as the tasks see it.")
@web_session.options(TENSORBOARD_PORT)
@click.option(
    "--helper-image",
    default="",
    metavar="IMAGE",
    help="Image with TensorBoard, for the pod that reads the claim.",
)
@cluster.helper_user_option
@cluster.job_options
def command(names: tuple[str, ...], logdir: str, **options: Any) -> None:
    """Show the summaries of running or finished jobs in the browser, until Ctrl-C, or --idle passes without
    a request.

    The TensorBoard of a job that has one (`tensorboard: /out/logs` in the job file) is forwarded to a local port.
    Otherwise a short-lived pod with the job's image reads the claim of the summaries, and is deleted when this
    command ends. Jobs of a namespace share one TensorBoard, and so do runs on this machine.

    \b
    Examples:
      tfyard tensorboard mnist
      tfyard tensorboard mnist-a mnist-b --logdir /out/logs
      tfyard tensorboard @latest --local --no-browser
    """
    show = web_session.read(options)
    helper = HelperOptions(image=options.pop("helper_image"), user=options.pop("helper_user"))
    places = [target.find(name, options) for name in dict.fromkeys(names)]
    interrupts.run(_show(boards(places, logdir, helper, show.here(TENSORBOARD_PORT)), show))


async def _show(making: AbstractAsyncContextManager[list[Page]], wanted: PageOptions) -> None:
    async with making as pages:
        await web_session.show(pages, wanted)
