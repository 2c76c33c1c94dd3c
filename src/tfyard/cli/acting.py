"""What the commands that change a job share: they say what goes and what stays, ask on a terminal, and do it."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import target
from tfyard.errors import Interrupted, TfyardError
from tfyard.overview.wording import harmless

if TYPE_CHECKING:
    from tfyard.cli.target import ClusterJob
    from tfyard.remote.actions import Intent

DONE = {
    "stop": "stopped",
    "resume": "resumed",
    "restart": "restarted",
    "scale": "scaled",
    "delete": "deleted",
}
GOES_ON = {
    "stop": "its pods are deleted after their grace period",
    "restart": "its tasks start again",
    "delete": "the job and its pods are deleted",
}
"""Without us, after Ctrl-C."""

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; only a terminal is asked.")
timeout_option = click.option(
    "--timeout", default="", metavar="TIME", help="Wait no longer than this, as in 10m; default: no limit."
)


class Declined(TfyardError):
    """The user does not want it."""


def carry_out(job: "ClusterJob", intent: "Intent", yes: bool) -> bool:
    """False: there was nothing to do, which is said."""
    from tfyard.remote import actions

    if not intent.requests:
        click.echo(f"{intent.found.title} unchanged: {'; '.join(intent.notes)}")
        return False
    announce(intent)
    if intent.goes:
        confirm(yes)
    actions.perform(job.client, intent)
    if intent.verb in DONE:
        click.echo(f"{intent.found.title} {DONE[intent.verb]}")
    return True


def announce(intent: "Intent") -> None:
    found = intent.found
    tell(
        f"{intent.verb} {found.title} in the namespace {found.namespace}",
        intent.goes,
        intent.stays,
        intent.notes,
    )


def tell(title: str, goes: Sequence[str], stays: Sequence[str], notes: Sequence[str] = ()) -> None:
    """On standard error: it is no data."""
    click.echo(harmless(title), err=True)
    for word, texts in (("goes:", goes), ("stays:", stays), ("note:", notes)):
        for text in texts:
            click.echo(f"  {word:<7}{harmless(text)}", err=True)


def confirm(yes: bool) -> None:
    """Without a terminal nobody is asked, as with kubectl."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm("Go on?", err=True):
        raise Declined("nothing was changed")


def wait(job: "ClusterJob", intent: "Intent", timeout: str) -> None:
    from tfyard.cli.waiting import seconds
    from tfyard.remote.action_waits import until_done

    with interruptible(job.found.name, GOES_ON[intent.verb]):
        until_done(job.client, intent, target.say, seconds(timeout))


@contextmanager
def interruptible(name: str, goes_on: str) -> Iterator[None]:
    """While it is waited for what was asked for: nothing takes that back."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"{name}: this ends the wait only; {goes_on}") from None
    finally:
        signal.signal(signal.SIGINT, before)


def start(prepare: Callable[[], Any], quiet: bool) -> int:
    """A run on this machine, in the foreground as by `tfyard run`; its exit code."""
    from tfyard.node import launch

    launch.ahead()
    from tfyard.cli.screen.follow import follow

    return follow(prepare(), quiet=quiet)
