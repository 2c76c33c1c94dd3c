# Installs the packages that the code requires, once per layer.  requirements.py FILE FOLDER_OF_LAYERS LAYER
# Works with every Python 3, because images may be old.
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

file, layers, name = sys.argv[1:]
layer = os.path.join(layers, name)
pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def constraints(named):
    """Versions of the image's packages, which stay unless the file names them: TensorFlow needs its own numpy."""
    found = subprocess.Popen([*pip, "list", "--format=freeze"], stdout=subprocess.PIPE)
    lines = found.communicate()[0].decode().splitlines(True)
    if found.returncode:
        sys.exit("the image has no pip: the packages of {} cannot be installed".format(file))
    return [line for line in lines if "==" in line and normal(line.split("==")[0]) not in named]


def normal(package):
    return re.sub("[-_.]+", "-", package).lower()


def install(part):
    made, limits = os.path.join(part, "made"), os.path.join(part, "constraints.txt")
    os.mkdir(made)
    with open(file) as text, open(limits, "w") as output:
        output.writelines(constraints({normal(re.split(r"[^\w.-]", line.strip())[0]) for line in text}))
    where = ["--no-cache-dir", "--target", made, "--constraint", limits]
    code = subprocess.call([*pip, "install", *where, "-r", file], env=dict(os.environ, TMPDIR=part))
    if code:
        sys.exit("pip could not install the packages of {} (exit code {})".format(file, code))
    try:
        os.rename(made, layer)
    except OSError:
        if not os.path.isdir(layer):
            raise  # if the layer exists, another task was faster


def clean():
    """Deletes unused layers and what killed tasks have left. Only the tasks' own user may delete them."""
    for each in os.listdir(layers):
        path = os.path.join(layers, each)
        if each.endswith(".part") and age(path) > 86400:
            shutil.rmtree(path, ignore_errors=True)


def age(path):
    """Seconds since the last change."""
    try:
        return time.time() - os.path.getmtime(path)
    except OSError:
        return 0.0  # another task has deleted it


clean()
if os.path.isdir(layer):
    sys.stderr.write("the packages of {} are in {} already\n".format(file, layer))
else:
    sys.stderr.write("installing the packages of {}\n".format(file))
    # Other tasks may install at the same time: each works in a separate folder, and the first that ends is used.
    part = tempfile.mkdtemp(".part", "{}.{}.".format(name, socket.gethostname()), layers)
    try:
        install(part)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sys.stderr.write("the packages are in {}\n".format(layer))
sys.path.insert(1, layer)  # as PYTHONPATH does in the training
