# One task of a TensorFlow cluster: serves until it is stopped, for whoever drives it from a notebook.
# CLUSTER_CONFIG lists all tasks ({"ps": ["host:port", …], …}); POD_NAME ends with this task's number.
import json
import os
import socket
import sys
import time

cluster = json.loads(os.environ["CLUSTER_CONFIG"])
job, _, index = os.environ["POD_NAME"].rpartition("-")
if job not in cluster or not index.isdigit() or int(index) >= len(cluster[job]):
    sys.exit("{} is no task of the cluster: {}".format(os.environ["POD_NAME"], ", ".join(sorted(cluster))))

own = cluster[job][int(index)].rpartition(":")[0]
for second in range(600):
    try:
        socket.getaddrinfo(own, None)
        break
    except OSError:
        if second % 30 == 0:
            print("waiting for the name", own, "- is the cluster's DNS well?", flush=True)
        time.sleep(1)

import tensorflow as tf

print("task", index, "of", job, "serves at", cluster[job][int(index)], flush=True)
tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=int(index)).join()
