"""The one exception tree of tfyard. Each class carries the exit code that a shell sees."""


class TfyardError(Exception):
    """Anything that tfyard says in one line to the person who asked."""

    exit_code = 1


class Invalid(TfyardError):
    """What the user wrote cannot be understood or is not allowed."""


class Usage(TfyardError):
    """The command line itself was wrong; 2 is what click and most shells' tools use for this."""

    exit_code = 2
