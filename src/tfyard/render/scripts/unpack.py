# Unpacks the job's code: archive, folder. Runs on any Python, as images are old.
import sys
import tarfile

with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2])
sys.stderr.write("the code is in {}\n".format(sys.argv[2]))
