# Fetches the job's code.  fetch.py ADDRESS_OF_ARCHIVE FOLDER MOST_BYTES MOST_FILES
# Works with Python 2 and 3, because images may be old.
import contextlib
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile

try:
    from urllib.request import urlopen
except ImportError:
    from urllib2 import urlopen

address, target = sys.argv[1:3]
most_bytes, most_files = map(int, sys.argv[3:])


def limited(members, size):
    total = 0
    for count, member in enumerate(members, 1):
        total += getattr(member, size)
        if count > most_files or total > most_bytes:
            message = "the archive has more than {} files or, unpacked, more than {} bytes"
            sys.exit(message.format(most_files, most_bytes))
        yield member


work = tempfile.mkdtemp()
archive, unpacked = os.path.join(work, "archive"), os.path.join(work, "unpacked")
for attempt in range(1, 6):
    try:
        with contextlib.closing(urlopen(address, timeout=60)) as answer, open(archive, "wb") as file:
            shutil.copyfileobj(answer, file)
        break
    except EnvironmentError as error:
        sys.stderr.write("attempt {} to fetch {} failed: {}\n".format(attempt, address, error))
        if attempt == 5:
            sys.exit("the code could not be fetched: can this cluster reach {}?".format(address))
        time.sleep(2**attempt)

os.mkdir(unpacked)
if zipfile.is_zipfile(archive):
    with zipfile.ZipFile(archive) as found:
        found.extractall(unpacked, limited(found.infolist(), "file_size"))
else:
    with tarfile.open(archive) as found:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        found.extractall(unpacked, limited(found, "size"), **safely)

# Archives of repositories contain one folder with everything in it.
inside = os.listdir(unpacked)
if len(inside) == 1 and os.path.isdir(os.path.join(unpacked, inside[0])):
    unpacked = os.path.join(unpacked, inside[0])
for name in os.listdir(unpacked):
    shutil.move(os.path.join(unpacked, name), os.path.join(target, name))
sys.stderr.write("the code is in {}\n".format(target))
