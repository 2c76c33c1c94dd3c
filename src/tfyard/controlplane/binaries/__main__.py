"""`python -m tfyard.controlplane.binaries`: get the control plane's binaries unless this machine has them."""

import sys

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.binaries.obtain import find_or_obtain


def main() -> int:
    try:
        binaries = find_or_obtain(lambda line: print(line, flush=True))
    except MissingBinaries as problem:
        print(f"no control plane: {problem}", file=sys.stderr)
        return problem.exit_code
    print(f"control plane {binaries.version} in {binaries.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
