"""`tfyard tensorboard`: the summaries of jobs in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster, offers, target, web_session
from tfyard.model.names import TENSORBOARD_PORT

if TYPE_CHECKING:
    from tfyard.cli.web_session import Show
    from tfyard.sdk.boards import Source


@click.command("tensorboard")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=offers.jobs)
@click.option("--logdir", default="", metavar="DIR", help="Where the summaries are, as the tasks see it.")
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

    A TensorBoard that runs beside a job (`tensorboard: /out/logs` in the job file) is reached through a port here.
    Otherwise a short-lived pod with the job's image reads the claim that the summaries are on, and goes when this
    command ends; several jobs of a namespace share one, and so do several runs on this machine.

    \b
    Examples:
      tfyard tensorboard mnist
      tfyard tensorboard mnist-a mnist-b --logdir /out/logs
      tfyard tensorboard @latest --local --no-browser
    """
    show = web_session.read(options)
    image, user = options.pop("helper_image"), options.pop("helper_user")
    found = [target.find(name, options) for name in dict.fromkeys(names)]
    from tfyard.cli import interrupts
    from tfyard.sdk.boards import Source

    interrupts.run(_show(found, Source(log_dir=logdir, image=image, user=user), show))


async def _show(found: Sequence[target.Target], source: Source, wanted: Show) -> None:
    from tfyard.sdk import boards

    runs = [(each.directory, each.record) for each in found if isinstance(each, target.LocalRun)]
    jobs = [each for each in found if isinstance(each, target.ClusterJob)]
    here = wanted.here(TENSORBOARD_PORT)
    async with AsyncExitStack() as stack:
        pages = await stack.enter_async_context(boards.of_runs(runs, source.log_dir, here)) if runs else []
        if jobs:
            for job in jobs:
                job.client.close()
            access, named = jobs[0].client.access, [job.found for job in jobs]
            pages += await stack.enter_async_context(boards.of_jobs(access, named, source, here))
        await web_session.show(pages, wanted)
