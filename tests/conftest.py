"""Fixtures that more than one room uses, and coroutines as tests."""

import asyncio
import inspect

import pytest

pytest_plugins = ["tfyard.testing.fixtures"]

LONGEST_ASYNC_TEST = 120


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in a loop of its own and never for ever: a lost event must not hang CI."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), LONGEST_ASYNC_TEST))
    return True
