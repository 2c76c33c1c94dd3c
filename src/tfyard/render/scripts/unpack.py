# Unpacks the job's code: archive, folder. Any Python 3 runs it.
import sys
import tarfile

with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])
print("the code is in", sys.argv[2])
