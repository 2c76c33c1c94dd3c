"""`python -m tfyard.controlplane.binaries`: build the control plane unless it is here already."""

import sys

from tfyard.controlplane.binaries import MissingBinaries, locate
from tfyard.controlplane.binaries.build import build


def main() -> int:
    try:
        binaries = locate()
    except MissingBinaries:
        try:
            build(lambda line: print(line, flush=True))
            binaries = locate()
        except MissingBinaries as problem:
            print(f"no control plane: {problem}", file=sys.stderr)
            return problem.exit_code
    print(f"control plane {binaries.version} in {binaries.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
