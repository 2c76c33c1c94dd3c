"""The epoch of each reading of a log. Keras names the epoch once, in the line before its progress bar."""

from msgspec.structs import replace

from tfyard.logs.readings import Reading


class Epochs:
    """The current epoch of several logs, each read from its start."""

    def __init__(self) -> None:
        self._last: dict[str, Reading] = {}
        """Log -> its last reading with an epoch."""

    def forget(self, source: str) -> None:
        """Forget a log that starts again."""
        self._last.pop(source, None)

    def place(self, source: str, reading: Reading) -> Reading:
        """The reading with its epoch, if it has one. A progress bar that starts again or has another length
        without a new epoch belongs to an evaluation or prediction, not to the training."""
        before = self._last.get(source)
        if reading.epoch is None and before is not None and _continues(before, reading):
            reading = replace(reading, epoch=before.epoch, epochs=before.epochs)
        if reading.epoch is not None:
            self._last[source] = reading
        elif reading.total is not None:
            self.forget(source)
        return reading


def _continues(before: Reading, after: Reading) -> bool:
    if after.step is None or before.step is None:
        return after.step is not None
    return after.step >= before.step and (before.total is None or after.total == before.total)
