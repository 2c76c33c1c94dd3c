"""`tfyard tensorboard`: the summaries of jobs in the browser."""

from __future__ import annotations

from typing import Any

import click

from tfyard.cli import cluster, offers, target


@click.command("tensorboard")
@click.argument("names", metavar="JOB...", nargs=-1, required=True, shell_complete=offers.jobs)
@click.option("--logdir", default="", metavar="DIR", help="Where the summaries are, as the tasks see it.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Here; default: 6006, or any that is free."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--idle",
    default="30m",
    show_default=True,
    metavar="TIME",
    help="End after so long without a look; 0: never.",
)
@click.option(
    "--helper-image", default="", metavar="IMAGE", help="With TensorBoard, for a pod that reads the claim."
)
@click.option(
    "--helper-user",
    type=click.IntRange(0),
    metavar="UID",
    help="Of that pod. Default: that of the job's pods, if it names one, else 65532.",
)
@cluster.job_options
def command(names: tuple[str, ...], logdir: str, **options: Any) -> None:
    """Show the summaries of running or finished jobs in the browser, until Ctrl-C or until nobody looks any more.

    A TensorBoard that runs beside a job (`tensorboard: /out/logs` in the job file) is reached through a port here.
    Otherwise a short-lived pod with the job's image reads the claim that the summaries are on, and goes when this
    command ends; several jobs of a namespace share one, and so do several runs on this machine.

    \b
    Examples:
      tfyard tensorboard mnist
      tfyard tensorboard mnist-a mnist-b --logdir /out/logs
      tfyard tensorboard @latest --local --no-browser
    """
    from tfyard.cli.web_session import read

    show = read(options.pop("port"), options.pop("no_browser"), options.pop("idle"))
    image, user = options.pop("helper_image"), options.pop("helper_user")
    found = [target.find(name, options) for name in dict.fromkeys(names)]
    from tfyard.cli import boards, interrupts

    source = boards.Source(log_dir=logdir, image=image, user=user)
    interrupts.run(boards.show(found, source, show))
