"""Packages that only some commands need: they come with an extra, as in `pip install "tfyard[operator]"`."""

from collections.abc import Iterator
from contextlib import contextmanager

from tfyard.errors import Usage

_NAMES = {
    "argon2": "argon2-cffi",
    "_argon2_cffi_bindings": "argon2-cffi",
    "prometheus_client": "prometheus-client",
}
"""Module -> the name that pip knows, where they differ."""


class MissingExtra(Usage, ImportError):
    """A package is not installed."""


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Around imports: MissingExtra if one of them fails because a package of the extra is not installed. If it is
    missed by a part that has an extra of its own, the extra of the whole is named."""
    try:
        yield
    except (ModuleNotFoundError, MissingExtra) as error:
        package = (error.name or "").partition(".")[0]
        if package == "tfyard":
            raise
        missing = MissingExtra(f'{what} needs {_NAMES.get(package, package)}: pip install "tfyard[{extra}]"')
        missing.name = package
        raise missing from None
