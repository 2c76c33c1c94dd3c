# Tells the packages of the interpreter that runs this, in one line of at most 64 KiB.
# The name of a package's folder has its version: no file is opened. Works with Python 2 and 3.
import json
import os
import platform
import re
import sys

packages = {}
for folder in sys.path[1:]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        continue  # not every entry is a folder that is there
    for name in names:
        stem, _, kind = name.rpartition(".")
        if kind in ("dist-info", "egg-info"):
            package, _, version = stem.partition("-")
            packages.setdefault(re.sub("[-_.]+", "-", package).lower(), version.partition("-py")[0])
line = json.dumps({"python": platform.python_version(), "packages": packages}, sort_keys=True)
if len(line) > 1 << 16:
    line = json.dumps({"problem": "there are too many: {}".format(len(packages))})
print("packages: " + line)
