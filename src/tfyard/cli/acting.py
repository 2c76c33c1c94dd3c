"""Shared by the commands that change a job: print what an action would do, ask for confirmation, perform it."""

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import cleandoc
from typing import Any

import click
from msgspec import Struct

from tfyard.cli import output, several, target
from tfyard.errors import Interrupted, TfyardError, Usage
from tfyard.node import launch
from tfyard.overview.wording import harmless
from tfyard.sdk.place import Done, Intent, Place

Tell = Callable[[Intent, str], None]

EXAMPLES = "\b\nExamples:"
FOUR_WORDS = """\b
stop     its pods are deleted, the job stays and can be resumed
restart  some of its tasks start again, the others run on
rerun    a new job of the same spec starts, the old one stays
delete   the job and its pods are deleted, its data stays

"""

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; only a terminal is asked.")
timeout_option = click.option(
    "--timeout", default="", metavar="TIME", help="Wait no longer than this, as in 10m; default: no limit."
)


class ActionCommand(click.Command):
    """A command whose help explains how stop, restart, rerun and delete differ."""

    def __init__(self, name: str, help: str, **options: Any) -> None:
        super().__init__(name, help=cleandoc(help).replace(EXAMPLES, FOUR_WORDS + EXAMPLES), **options)


class Declined(TfyardError):
    """The user has not confirmed the action."""


class Performed(Struct, frozen=True, kw_only=True):
    """What an action did, for -o json."""

    name: str
    title: str
    is_changed: bool
    goes: tuple[str, ...]
    stays: tuple[str, ...]
    notes: tuple[str, ...]
    results: tuple[str, ...]
    """What text output says."""
    created: str = ""
    """Name of the new job, if the action made one."""


def change(
    names: Sequence[str],
    options: Mapping[str, Any],
    action: Callable[[Place], Intent],
    *,
    timeout: float | None = None,
    running: bool = True,
) -> None:
    """Do the same to the jobs of these names, or to those with the labels of -l; `running`: only to those of the
    latter that have not ended."""
    places = several.places(names, options, target.to_change, running=running)
    carry_out(
        *several.each(action, places),
        yes=options["yes"],
        timeout=timeout,
        quiet=options.get("quiet", False),
        form=options["output"],
        single=len(names) == 1,
    )


def carry_out(
    *intents: Intent,
    yes: bool,
    timeout: float | None = None,
    quiet: bool = False,
    form: str = "text",
    single: bool = True,
) -> None:
    """Print, confirm and perform actions. `timeout`: seconds to wait for their end; None: do not wait. A job that
    runs in the foreground, `quiet` or not, sets the exit code of this command. `form`: text or json; `single`:
    the JSON is that of one job, instead of a list."""
    for intent in intents:
        if intent.foreground and len(intents) > 1:
            raise Usage(f"{intent.name} runs on this machine, in the foreground: name no other job with it")
        if intent.foreground:
            sys.exit(intent.foreground(_Terminal(form, quiet)))
    is_json, texts = form == "json", {id(intent): list[str]() for intent in intents}

    def tell(intent: Intent, text: str) -> None:
        texts[id(intent)].append(text)
        if not is_json:
            click.echo(text)

    for intent in intents:
        if intent.perform is None:
            tell(intent, f"{intent.title} unchanged: {'; '.join(intent.notes)}")
    actions = [intent for intent in intents if intent.perform]
    for intent in actions:
        _announce(intent)
    if any(intent.goes for intent in actions):
        _confirm(yes)
    started = {id(intent): _perform(intent, tell) for intent in actions}
    for intent in actions:
        _wait(intent, started[id(intent)], timeout, tell)
    if is_json:
        results = [_performed(each, started.get(id(each)), texts[id(each)]) for each in intents]
        output.print_answers(results, single=single)


def _performed(intent: Intent, done: Done | None, texts: Sequence[str]) -> Performed:
    return Performed(
        name=intent.name,
        title=intent.title,
        is_changed=done is not None,
        goes=intent.goes,
        stays=intent.stays,
        notes=intent.notes,
        results=tuple(texts),
        created=done.made().name if done and done.made else "",
    )


def _announce(intent: Intent) -> None:
    """Print to standard error what the action would do."""
    click.echo(harmless(intent.heading), err=True)
    parts: tuple[tuple[str, Sequence[str]], ...] = (
        ("goes:", intent.goes),
        ("stays:", intent.stays),
        ("note:", intent.notes),
    )
    for word, texts in parts:
        for text in texts:
            click.echo(f"  {word:<7}{harmless(text)}", err=True)


def _confirm(yes: bool) -> None:
    """Ask for confirmation; without a terminal, as with kubectl, nothing is asked."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not click.confirm("Go on?", err=True):
        raise Declined("nothing was changed")


def _perform(intent: Intent, tell: Tell) -> Done:
    done = intent.perform() if intent.perform else Done()
    if done.text:
        tell(intent, done.text)
    return done


def _wait(intent: Intent, done: Done, timeout: float | None, tell: Tell) -> None:
    if timeout is None and not done.is_waited_for:
        return
    with _interruptible(f"{intent.name}: this ends the wait only; {done.goes_on}"):
        for text in done.wait(target.say, timeout or 0.0):
            tell(intent, text)


@contextmanager
def _interruptible(text: str) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(text) from None
    finally:
        signal.signal(signal.SIGINT, before)


class _Terminal(Struct, frozen=True):
    """Shows what runs in the foreground, as `tfyard run` and `tfyard sweep` do."""

    form: str
    quiet: bool

    def run(self, prepare: Callable[[], Any]) -> int:
        launch.ahead()
        from tfyard.cli.screen.follow import follow  # 80 ms, which jobs of a cluster do not need

        return follow(prepare(), self.form, quiet=self.quiet)

    def drive(self, prepare: Callable[[], Any]) -> int:
        from tfyard.cli.screen import sweep  # 80 ms

        return sweep.follow(prepare(), self.form, quiet=self.quiet)
