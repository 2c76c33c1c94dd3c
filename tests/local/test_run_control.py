"""Orders to a run, by the socket in its directory."""

import asyncio
from pathlib import Path

import pytest

from tfyard.local import run_control
from tfyard.local.run import listening
from tfyard.local.run_control import Order, Reply


class FakeRun:
    """A run of one task that is restarted at once: a run of its own is in tests/e2e."""

    def __init__(self) -> None:
        self.stopped, self.count = False, 1

    def stop(self) -> None:
        self.stopped = True

    def restart(self, task: str) -> bool:
        self.count += task == "worker-0"
        return task == "worker-0"

    def starts(self, task: str) -> int:  # noqa: ARG002
        return self.count


async def until_listening(folder: Path) -> None:
    while not (folder / "control").exists():
        await asyncio.sleep(0)


@pytest.mark.parametrize("depth", [0, 12])
async def test_an_order_arrives_however_long_the_path_is(tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath(*["a-folder-with-a-name"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    run = FakeRun()
    async with listening(folder, run):
        await until_listening(folder)
        order = Order("restart", ("worker-0", "worker-1"))
        replies = await asyncio.to_thread(lambda: list(run_control.send(folder, order)))
    assert replies == [Reply(refused=("worker-1",)), Reply(running="worker-0")]
    assert [*folder.glob("control")] == []


async def test_an_invalid_order_does_no_harm(tmp_path: Path) -> None:
    run = FakeRun()
    async with listening(tmp_path, run):
        await until_listening(tmp_path)
        for words in (b"", b"stop\n", b'{"do":"burn"}\n', b"x" * 100_000):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control"))
            writer.write(words)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
    assert not run.stopped


def test_a_run_that_has_ended_takes_no_orders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(run_control.send(tmp_path, Order("stop")))
