# Fetches the job's code: address of a .zip or .tar archive, folder. Any Python 3 runs it.
import os
import shutil
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile

address, target = sys.argv[1:]
work = tempfile.mkdtemp()
archive, unpacked = os.path.join(work, "archive"), os.path.join(work, "unpacked")
for attempt in range(1, 6):
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, open(archive, "wb") as file:
            shutil.copyfileobj(answer, file)
        break
    except OSError as error:
        print("attempt", attempt, "to fetch", address, "failed:", error, flush=True)
        if attempt == 5:
            sys.exit("the code did not arrive: can this cluster reach " + address + "?")
        time.sleep(2**attempt)

os.mkdir(unpacked)
if zipfile.is_zipfile(archive):
    with zipfile.ZipFile(archive) as found:
        found.extractall(unpacked)
else:
    with tarfile.open(archive) as found:
        if hasattr(tarfile, "data_filter"):
            found.extractall(unpacked, filter="data")
        else:
            found.extractall(unpacked)

# Archives of repositories have one folder in which everything is.
inside = os.listdir(unpacked)
if len(inside) == 1 and os.path.isdir(os.path.join(unpacked, inside[0])):
    unpacked = os.path.join(unpacked, inside[0])
for name in os.listdir(unpacked):
    shutil.move(os.path.join(unpacked, name), os.path.join(target, name))
print("the code is in", target)
