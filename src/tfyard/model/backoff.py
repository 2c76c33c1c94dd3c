"""How long to wait before the next attempt: longer after each failure, up to a limit.

    backoff = Backoff(first=0.1, longest=60.0, jitter=0.5)
    backoff = backoff.next()                    # after a failure
    await asyncio.sleep(backoff.delay(random.random()))

The delay depends on the number of failures only: a program that stores this number can continue after a restart.
"""

from msgspec import Struct
from msgspec.structs import replace


class Backoff(Struct, frozen=True, kw_only=True):
    first: float
    """Seconds to wait after the first failure."""
    longest: float
    factor: float = 2.0
    jitter: float = 0.0
    """Share of the delay that chance may take off, so that many clients do not retry at the same moment."""
    failures: int = 0

    def next(self) -> "Backoff":
        """The back-off after one more failure."""
        return replace(self, failures=self.failures + 1)

    def delay(self, chance: float = 0.0) -> float:
        """Seconds to wait now; 0 before any failure. `chance` is a random number from 0 to 1."""
        if not self.failures:
            return 0.0
        try:
            grown = self.first * self.factor ** (self.failures - 1)
        except OverflowError:
            grown = self.longest
        return min(grown, self.longest) * (1.0 - self.jitter * chance)
