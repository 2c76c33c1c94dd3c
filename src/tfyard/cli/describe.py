"""`tfyard describe`: prints everything that is known about a job."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, interrupts, output, several
from tfyard.errors import Usage
from tfyard.overview.job_view import lines
from tfyard.overview.wording import harmless
from tfyard.sdk.place import HelperOptions, Place


@click.command("describe")
@several.names_argument
@several.selector_option
@click.option("--spec", is_flag=True, help="Print the job as submitted and as applied, instead.")
@click.option("--code", is_flag=True, help="Print where the job's code is and which files it has, instead.")
@click.option(
    "--record",
    "is_record",
    is_flag=True,
    help="Print what was run: parameters, code, packages, machine, metrics.",
)
@click.option("--helper-image", default="", metavar="IMAGE", help="Image of the pod that looks into a claim.")
@output.text_or_json
@cluster.job_options
def command(
    names: tuple[str, ...], spec: bool, code: bool, is_record: bool, helper_image: str, **options: Any
) -> None:
    """Describe jobs: the state in a sentence, every attempt at the tasks (how long each waited for a node, was
    prepared, and ran, and how it ended), roles, where the output is, conditions, events, GPU-hours.

    \b
    Examples:
      tfyard describe mnist
      tfyard describe mnist mnist-2
      tfyard describe @latest --local -o json
      tfyard describe mnist --spec        # as submitted, and with all defaults
      tfyard describe mnist --code        # where its code is, and which files it has
      tfyard describe mnist --record      # which commit, which packages, which parameters
    """
    is_json = options["output"] == "json"
    if is_json and (spec or code):
        raise Usage("-o json describes jobs; `tfyard get -o json` prints their specs")
    places = several.places(names, options)
    if code:
        interrupts.exit_by_exception()  # a pod that looks into a claim is deleted
    if is_record:
        _print_records(places, is_json=is_json, single=len(names) == 1)
        return
    if is_json:
        output.print_answers([_answer(place) for place in places], single=len(names) == 1)
        return
    for at, place in enumerate(places):
        if at:
            click.echo("---" if spec else "")
        for line in _lines(place, spec, HelperOptions(image=helper_image) if code else None):
            click.echo(harmless(line))


def _answer(place: Place) -> object:
    state = place.sweep()
    if state is None:
        return place.view()
    from tfyard.overview import sweep_answer  # 30 ms, which jobs do not need
    from tfyard.sweeps.search import importances

    return sweep_answer.described(place.name, place.namespace, state, importances(state))


def _print_records(places: Sequence[Place], *, is_json: bool, single: bool) -> None:
    from tfyard.overview import comparison_text  # 20 ms, which other answers do not need
    from tfyard.sdk import comparing

    jobs = [comparing.read(place) for place in places]
    if is_json:
        output.print_answers([comparison_text.plain_record(job) for job in jobs], single=single)
        return
    for at, job in enumerate(jobs):
        for line in ([""] if at else []) + comparison_text.record_lines(job, datetime.now(UTC)):
            click.echo(harmless(line))


def _lines(place: Place, spec: bool, code: HelperOptions | None) -> Iterable[str]:
    state = place.sweep()
    if state is not None and not spec and code is None:
        from tfyard.cli.screen.sweep import described  # 30 ms, which jobs do not need

        return described(place.name, state)
    if spec:
        return "---\n".join(each.text for each in place.specs()).removesuffix("\n").split("\n")
    return place.code(code) if code else lines(place.view(), datetime.now(UTC))
