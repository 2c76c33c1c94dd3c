"""What `tfyard submit` does after a job or a sweep was submitted."""

from pathlib import Path

from msgspec import Struct

from tfyard import extras
from tfyard.errors import Usage


class AfterSubmission(Struct, frozen=True):
    """What to do after the job was submitted."""

    follow: bool
    wait: bool
    on_finish: str
    verbose: bool
    output: str

    def check(self) -> None:
        """Reject wrong options before the job is submitted."""
        if self.output != "text" and (self.follow or self.wait):
            raise Usage(f"-o {self.output} prints the job as it was submitted: leave out --follow and --wait")
        if self.follow and self.wait:
            raise Usage("--follow waits, too: give one of --follow and --wait")
        if self.on_finish and not (self.follow or self.wait):
            raise Usage(
                "--on-finish needs --follow or --wait: without them tfyard does not wait for the end of the job"
            )
        if self.on_finish and Path(self.on_finish).exists() and not Path(self.on_finish).is_dir():
            raise Usage(f"--on-finish {self.on_finish}: this is a file; give a folder")
        if self.follow or self.on_finish:
            with extras.needs("kubernetes", f"tfyard submit {'--follow' if self.follow else '--on-finish'}"):
                from tfyard.remote.logs import follow  # noqa: F401
