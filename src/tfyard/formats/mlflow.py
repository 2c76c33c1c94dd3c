"""The address of an MLflow server, as job files, annotations and options have it."""

import re

from .declarations.reading import Notes, Path

PATTERN = r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$"
EXAMPLE = "http://127.0.0.1:5000"
VARIABLES = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"


def check(uri: str, path: Path, notes: Notes) -> None:
    """Reports a wrong address. Credentials do not belong into a file, so an address with some is not shown."""
    if refused := problem(uri):
        if "@" in uri:
            notes.error(path, *refused)
        else:
            notes.error(path, *refused, uri)


def refusal(uri: str) -> str:
    """What is wrong with the address of an option, as a sentence; empty: nothing."""
    refused = problem(uri)
    return f"--mlflow {'URI' if '@' in uri else uri}: {'; '.join(refused)}" if refused else ""


def problem(uri: str) -> tuple[str, str] | None:
    """What is wrong with an address, and the fix."""
    if re.match(r"https?://[^/?#]*@", uri):
        return "must have no credentials", f"set {VARIABLES}, where tfyard is called"
    if not re.match(PATTERN, uri):
        return "must be the address of an MLflow server", f"as in {EXAMPLE}, where `mlflow server` listens"
    return None
