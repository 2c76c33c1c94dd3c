"""One log through a scripted server, for what a real kubelet cannot be made to do at will."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from tests.remote.logs.test_follow import PACE, Seen
from tfyard.kube import Access, Client, ClusterEntry
from tfyard.kube.sync import SyncClient
from tfyard.logs.lines import Lines, LogSelection, Start
from tfyard.logs.splitting import Splitter
from tfyard.logs.terminal_text import LONGEST_LINE
from tfyard.remote.logs.pod_starts import LogRequest
from tfyard.remote.logs.stored_logs import read_log, since_restart
from tfyard.remote.logs.tail import JobPods, Tail
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatusDetails,
    PodDetails,
    PodStatusDetails,
    State,
)

NOW = datetime(2024, 11, 16, 4, tzinfo=UTC)


def line(second: int, text: str) -> bytes:
    return f"2024-11-16T04:00:{second:02}.000000001Z {text}\n".encode()


def pod(*, is_over: bool = False) -> PodDetails:
    state = (
        State(terminated=ContainerStateTerminated()) if is_over else State(running=ContainerStateRunning(NOW))
    )
    program = ContainerStatusDetails(name="tensorflow", state=state)
    meta = ObjectMeta(name="first-worker-0", creation_timestamp=NOW, uid="1")
    return PodDetails(meta, status=PodStatusDetails(phase="Running", container_statuses=(program,)))


class Script:
    """Answers one request after the other; remembers what they asked for."""

    def __init__(self, *answers: bytes) -> None:
        self._answers, self.asked = list(answers), list[dict[str, str]]()
        self.is_done = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        body = self._answers.pop(0)
        if len(self._answers) == 1:
            self.is_done.set()
        return web.Response(body=body)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            server = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with Client(Access(ClusterEntry(server=server))) as client:
                yield client
        finally:
            await runner.cleanup()


async def tail(script: Script, wanted: LogSelection) -> Seen:
    """Until the script has one answer left, which is that of a program that is over."""
    seen = Seen()
    async with script.client() as client:
        world = JobPods(client, "test", seen.show, PACE)
        world.note(pod())
        reading = asyncio.create_task(Tail(world, pod(), Start("worker-0"), wanted).follow())
        await asyncio.wait_for(script.is_done.wait(), 30)
        world.note(pod(is_over=True))
        world.notify()
        await asyncio.wait_for(reading, 30)
    return seen


async def test_a_rotation_is_told_as_a_gap_and_read_on_after() -> None:
    rotated = line(9, "nine") + line(10, "ten")
    script = Script(line(1, "one") + line(2, "two"), rotated, rotated, rotated + b"2024-11-16T04:00:11Z end")
    seen = await tail(script, LogSelection(tasks=("worker-0",)))
    assert seen.lines == {"worker-0": [b"one", b"two", b"nine", b"ten", b"end"]}
    assert [text for _, _, text in seen.of("gap")] == [
        "lines between 04:00:02.000 and 04:00:09.000 may be missing: the log was rotated"
    ]
    assert [asked.get("sinceTime", "") for asked in script.asked] == [
        "",
        "2024-11-16T04:00:01Z",
        "2024-11-16T04:00:01Z",
        "2024-11-16T04:00:09Z",
    ]


async def test_a_log_that_ends_early_is_asked_for_again_and_only_its_tail_once() -> None:
    log = [line(1, str(n)) for n in range(4)] + [line(2, "five"), line(3, "six")]
    script = Script(b"".join(log[2:5]) + b"2024-11-16T04:00:03.0000", b"".join(log))
    seen = await tail(script, LogSelection(tasks=("worker-0",), tail=3))
    assert seen.lines == {"worker-0": [b"2", b"3", b"five", b"six"]}
    assert not seen.said
    assert [asked.get("tailLines", "") for asked in script.asked] == ["3", ""]


async def test_what_a_kubelet_says_instead_of_a_line_is_told() -> None:
    broken = line(1, "one") + b"unable to retrieve container logs for containerd://x"
    seen = await tail(Script(line(1, "one"), broken), LogSelection(tasks=("worker-0",)))
    assert seen.lines == {"worker-0": [b"one"]}
    assert seen.of("kubelet")[0][2].startswith("unable to retrieve")


def test_a_line_without_end_is_kept_in_part() -> None:
    splitter = Splitter()
    for _ in range(40):
        assert splitter.feed(b"x" * (LONGEST_LINE // 8)) == []
    assert len(splitter.feed(b"y\nnext\n")[0]) <= LONGEST_LINE + 1


def test_since_restart_is_since_the_last_task_that_was_started_again() -> None:
    again = datetime(2024, 11, 16, 5, tzinfo=UTC)
    program = ContainerStatusDetails(
        name="tensorflow", restart_count=1, state=State(running=ContainerStateRunning(again))
    )
    restarted = PodDetails(
        ObjectMeta(name="first-worker-1", creation_timestamp=NOW, uid="2"),
        status=PodStatusDetails(container_statuses=(program,)),
    )
    wanted = LogSelection(tasks=("worker-0", "worker-1"), since_restart=True)
    assert since_restart(wanted, [pod(), restarted]).since == again
    assert since_restart(wanted, [pod()]).since is None


def test_a_log_whose_answer_breaks_off_is_read_on_from_there() -> None:
    log = [line(1, "one"), line(2, "two"), line(3, "three")]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    cut = b"".join(log[:2]) + b"2024-11-16T04:00:03.0"
    asked = list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for body, end in ((cut, b""), (b"".join(log), b"0\r\n\r\n")):
                connection, _ = server.accept()
                with connection:
                    asked.append(connection.recv(65536).split(b"\r\n")[0])
                    connection.sendall(head + b"%x\r\n%s\r\n" % (len(body), body) + end)

        thread = threading.Thread(target=serve)
        thread.start()
        access = Access(ClusterEntry(server=f"http://127.0.0.1:{server.getsockname()[1]}"))
        with SyncClient(access) as client:
            request = LogRequest(pod="p", container="c")
            events = list(read_log(client, "test", Start("worker-0"), request))
        thread.join()
    assert [text for event in events if isinstance(event, Lines) for text in event.texts] == [
        b"one",
        b"two",
        b"three",
    ]
    assert b"sinceTime=2024-11-16T04%3A00%3A01Z" in asked[1]


async def test_a_pod_that_is_gone_ends_even_if_a_late_list_still_tells_of_it() -> None:
    """It was read forever: its log is not found, and nothing says a second time that it was deleted."""
    seen, app = Seen(), web.Application()
    runner = web.AppRunner(app)  # finds nothing
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with Client(
            Access(ClusterEntry(server=f"http://127.0.0.1:{runner.addresses[0][1]}"))
        ) as client:
            world = JobPods(client, "test", seen.show, PACE)
            world.note(pod(is_over=True))
            reading = Tail(
                world, pod(is_over=True), Start("worker-0"), LogSelection(tasks=("worker-0",))
            ).follow()
            await asyncio.wait_for(reading, 30)
    finally:
        await runner.cleanup()
    assert world.pods == {}
