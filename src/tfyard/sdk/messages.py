"""Messages between a program and the process of its run or its sweep, as lines of JSON."""

import msgspec
from msgspec import Struct

from tfyard.local.settings import RunOptions
from tfyard.model import Problem
from tfyard.model.sweep import SweepSpec


class StartRun(Struct, frozen=True, tag=True):
    settings: RunOptions


class Resume(Struct, frozen=True, tag=True):
    directory: str
    """Directory of the run to continue."""


class Rerun(Struct, frozen=True, tag=True):
    directory: str
    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    name: str | None = None
    is_exact: bool = False


class StartSweep(Struct, frozen=True, tag=True):
    spec: SweepSpec
    settings: RunOptions
    """Options of its trials."""


class ResumeSweep(Struct, frozen=True, tag=True):
    directory: str
    """Folder of the sweep to go on with."""


RunOrder = StartRun | Resume | Rerun
SweepOrder = StartSweep | ResumeSweep


class Question(Struct, frozen=True):
    what: RunOrder | SweepOrder
    program: int
    """Process ID of the program."""


class Began(Struct, frozen=True, tag=True):
    directory: str


class RunRefused(Struct, frozen=True, tag=True):
    message: str
    is_usage: bool = False
    problems: tuple[Problem, ...] = ()
    name: str = ""


class UserMessage(Struct, frozen=True, tag=True):
    """A message for the user."""

    level: str
    text: str


Message = Began | RunRefused | UserMessage
MESSAGES: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
