"""Tests of what users without privileges meet, on machines where tests run as root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

NOBODY = 65534


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read and write everything: be nobody meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
