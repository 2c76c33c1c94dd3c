"""`python -m tools.helm [ARGUMENT]...`: build helm unless it exists, and call it with the arguments."""

import os
import sys

from tfyard.controlplane.binaries import MissingBinaries
from tools import helm


def main() -> int:
    try:
        program = helm.find_or_build(lambda line: print(line, flush=True))
    except MissingBinaries as problem:
        print(f"no helm: {problem}", file=sys.stderr)
        return problem.exit_code
    if sys.argv[1:]:
        os.execv(program, ["helm", *sys.argv[1:]])
    print(f"helm {helm.pinned_version()} in {program.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
