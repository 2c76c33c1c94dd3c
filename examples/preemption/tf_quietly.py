"""`from tf_quietly import tf`: TensorFlow with one thread per task and without its start-up banner.

Several tasks share one machine when a job runs locally, and each would otherwise start as many threads as
there are cores. Whoever sets these variables (`env:` in the job file) wins.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "4")  # with only one, a cluster can wait for itself
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors reach us as exceptions anyway
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # the same numbers on every kind of CPU

# While it is imported and looks for GPUs, TensorFlow writes lines that its own log level does not reach: only
# taking file descriptor 2 away stops them. An exception of the import is still shown, after the restore.
_stderr = os.dup(2)
_nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(_nowhere, 2)
try:
    import tensorflow as tf

    tf.config.list_physical_devices()
    tf.get_logger().setLevel("ERROR")  # saving under a strategy warns about its own retracing
    tf.get_logger().propagate = False  # some calls add a handler at the root: every line would come twice
finally:
    os.dup2(_stderr, 2)
    os.close(_stderr)
    os.close(_nowhere)

__all__ = ["tf"]
