"""A candidate in a process of its own, so that it can be frozen.

Run as `python -m tests.controller.candidate KUBECONFIG NAMESPACE IDENTITY`. It says `leads` when it does, and
right after it was stopped and woke up, whether it believes to lead still.
"""

import asyncio
import os
import sys
import threading
import time

from tests.controller.standing import TERMS
from tfyard.controller.leader_election import Leadership
from tfyard.controller.lease import Candidate
from tfyard.kube import kubeconfig


def say(text: str) -> None:
    """A line at once: two threads speak here, and `print` writes the end of a line by itself."""
    os.write(1, f"{text}\n".encode())


def say_after_waking(leadership: Leadership) -> None:
    """In a thread, so that nothing of the event loop can come first."""
    while True:
        before = time.monotonic()
        time.sleep(0.01)
        if time.monotonic() - before > TERMS.renew_deadline:
            say(f"woke, current: {leadership.is_current()}")


async def main(config: str, namespace: str, identity: str) -> None:
    def lost(reason: str) -> None:
        say(f"lost: {reason}")

    access = kubeconfig.load({"KUBECONFIG": config})
    leadership = Leadership(access, Candidate(identity, namespace), TERMS, lost)
    threading.Thread(target=say_after_waking, args=(leadership,), daemon=True).start()
    running = asyncio.create_task(leadership.run())
    while not leadership.is_current():
        await asyncio.sleep(0.01)
    say("leads")
    await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
