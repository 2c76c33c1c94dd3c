"""`tfyard metrics`: prints the metrics of a training as a curve, a table or a picture."""

from typing import Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.cli.output import print_json
from tfyard.cli.screen.summary import plot as draw
from tfyard.errors import Usage
from tfyard.model.sweep import SweepState
from tfyard.overview import metrics, sweep_text, table
from tfyard.overview.metrics import Point


@click.command("metrics")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=offers.tasks)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["curve", "table", "csv", "json"]),
    default="curve",
    show_default=True,
    help="Format of the output: the loss as a curve, or every value as a table, CSV or JSON.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False), metavar="FILE.svg", help="Write a picture of all curves."
)
@cluster.job_options
def command(name: str, tasks: tuple[str, ...], output: str, plot: str | None, **options: Any) -> None:
    """Print the metrics (loss, accuracy, ...) that a job's tasks wrote to their logs: of these tasks, or of the
    chief (else the first worker) and the evaluator. The program need not call anything for that. Of a sweep, the
    objective of its trials.

    \b
    Examples:
      tfyard metrics mnist                      # the loss as a curve
      tfyard metrics mnist -o csv > mnist.csv
      tfyard metrics mnist --plot loss.svg
      tfyard metrics mnist worker-0 worker-1 -o json
    """
    place = target.find(name, options)
    points = place.points(tasks)
    if not points:
        raise Usage(
            f"{name}: no metrics in the logs; lines such as `Step: 10, loss: 0.3` and Keras's are understood"
        )
    if plot and not plot.endswith(".svg"):
        raise Usage(f"--plot {plot}: it writes SVG, so the name must end with .svg")
    if plot:
        _draw(points, plot, place.name)
        return
    state = place.sweep()
    if state is not None and output == "curve":
        _print_best_so_far(state)
        return
    _print(points, output)


def _draw(points: list[Point], path: str, name: str) -> None:
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - click has the path as text
        file.write(metrics.svg(metrics.progress(points), name))
    target.say(f"wrote {path}")


def _print(points: list[Point], output: str) -> None:
    if output == "csv":
        click.echo(metrics.csv(points).encode(), nl=False)
    elif output == "json":
        print_json([metrics.plain(point) for point in points])
    elif output == "table":
        header, *rows = metrics.rows(points)
        click.echo("\n".join(table.lines([[name.upper() for name in header], *rows])))
    else:
        _print_curve(points)


def _print_best_so_far(state: SweepState) -> None:
    click.echo(sweep_text.progress(state))
    for line in draw(sweep_text.best_so_far(state)):
        click.echo(line)


def _print_curve(points: list[Point]) -> None:
    progress = metrics.progress(points)
    curve = progress.loss()
    click.echo(f"{progress.position()}  {progress.metrics()}")
    for line in draw(curve) if curve else ():
        click.echo(line)
