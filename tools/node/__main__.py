"""`python -m tools.node`: see the package."""

import subprocess
import sys
from pathlib import Path

from tfyard.controlplane.process import ProcessFailed
from tfyard.errors import TfyardError
from tools.node import __doc__ as usage
from tools.node import binaries, guests, images, obstacles
from tools.node.node import Node


def main(words: list[str]) -> int:
    if problems := obstacles():
        print("no node on this machine:", *problems, sep="\n  ", file=sys.stderr)
        return 1
    try:
        return act(words)
    except TfyardError as problem:
        print(f"node: {problem}", file=sys.stderr)
        return problem.exit_code


def act(words: list[str]) -> int:
    match words:
        case ["check"]:
            print("this machine can run a node")
        case []:
            binaries.build(lambda line: print(line, flush=True))
            images.build(lambda line: print(line, flush=True))
            guests.build(lambda line: print(line, flush=True))
        case ["up", state]:
            node = Node(Path(state))
            node.start()
            print(f"export KUBECONFIG={node.kubeconfig}")
        case ["enter", state, *command] if command:
            return subprocess.run(Node(Path(state)).enter_command(*command)).returncode
        case ["down", state]:
            Node(Path(state)).stop()
        case ["down", state, "--purge"]:
            Node(Path(state)).purge()
        case _:
            raise ProcessFailed(f"usage:\n{usage}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
