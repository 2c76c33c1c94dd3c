# Unpacks the job's code.  unpack.py ARCHIVE FOLDER
# Works with Python 2 and 3, because images may be old.
import sys
import tarfile

with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])
sys.stderr.write("the code is in {}\n".format(sys.argv[2]))
