"""Packages that only some commands need: they come with an extra, as in `pip install "tfyard[operator]"`."""

from collections.abc import Iterator
from contextlib import contextmanager

from tfyard.errors import Usage

_NAMES = {
    "argon2": "argon2-cffi",
    "_argon2_cffi_bindings": "argon2-cffi",
    "prometheus_client": "prometheus-client",
}
"""Module -> name of its package for pip, where they differ."""


class MissingExtra(Usage, ImportError):
    """A package is not installed."""


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Turns a failed import inside the `with` block into MissingExtra, which names the extra to install. If blocks
    are nested, the message names the extra of the outer one, because it includes the inner one."""
    try:
        yield
    except (ModuleNotFoundError, MissingExtra) as error:
        package = (error.name or "").partition(".")[0]
        if package == "tfyard":
            raise
        missing = MissingExtra(f'{what} needs {_NAMES.get(package, package)}: pip install "tfyard[{extra}]"')
        missing.name = package
        raise missing from None
