"""What a program and the process of its run tell each other, as lines of JSON."""

import msgspec
from msgspec import Struct

from tfyard.local.settings import Settings
from tfyard.model import Problem


class Start(Struct, frozen=True, tag=True):
    settings: Settings


class Resume(Struct, frozen=True, tag=True):
    directory: str
    """Of the run that goes on."""


class Rerun(Struct, frozen=True, tag=True):
    directory: str
    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    name: str | None = None


class Asked(Struct, frozen=True):
    what: Start | Resume | Rerun
    program: int
    """The process that asks."""


class Began(Struct, frozen=True, tag=True):
    directory: str


class Refused(Struct, frozen=True, tag=True):
    message: str
    is_usage: bool = False
    problems: tuple[Problem, ...] = ()
    name: str = ""


class Told(Struct, frozen=True, tag=True):
    """What a user should know."""

    level: str
    text: str


Message = Began | Refused | Told
MESSAGES: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
