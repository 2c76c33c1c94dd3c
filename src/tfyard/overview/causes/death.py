"""The end of a program as causes are concluded from it."""

import re

from msgspec import Struct

from tfyard.logs.tracebacks import Raised
from tfyard.overview.cause import Cause
from tfyard.overview.evidence import End, Evidence

LAST_LINES = 40
"""Number of lines of a log's end in which a cause is looked for."""
_WARNING = r"\w*Warning: |(?i:\bdeprecated\b)|^\s*warnings\.warn\("
"""Lines that many programs end with, and that no program ends because of."""
_HINT = r"^(?:Pass --help|Try '|Run .* --help)"
"""Lines that say how to get help, which are no cause."""
_LEFT_OUT = "; files that .gitignore names are not sent: a line `!PATH` in .tfyardignore brings them"


class Death(Struct, frozen=True):
    """The end of a program, with its exception."""

    end: End
    evidence: Evidence
    raised: Raised | None

    @property
    def is_local(self) -> bool:
        return self.evidence.is_local

    @property
    def text(self) -> str:
        """Text of the exception, else the last lines: earlier ones may be about handled errors."""
        return self.raised.whole if self.raised else "\n".join(self.end.text.split("\n")[-LAST_LINES:])

    @property
    def left_out(self) -> str:
        """The hint that files may be left out of submitted code; on this machine, its folder is used as it is."""
        return "" if self.is_local else _LEFT_OUT

    def fix(self, there: str, here: str = "") -> str:
        """The fix: `there` in a cluster, `here` on this machine if it is given."""
        return here if here and self.is_local else there

    def cause(self, kind: str, sentence: str, fix: str = "", line: str = "") -> Cause:
        position = f" ({self.raised.position})" if self.raised and self.raised.position else ""
        proof = line or (self.raised.sentence if self.raised else last_line(self.end.text))
        return Cause(
            kind=kind,
            sentence=f"{sentence}{position}",
            fix=fix,
            tasks=(self.end.task,),
            evidence=(self.end.quote(proof),),
        )


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return next(
        (line for line in reversed(lines) if not re.match(_HINT, line) and not re.search(_WARNING, line)), ""
    )
