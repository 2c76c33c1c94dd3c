# One task of a TensorFlow cluster: a server for notebooks, until it is stopped.
# CLUSTER_CONFIG lists all tasks ({"ps": ["host:port", …], …}); POD_NAME ends with this task's number.
import json
import os
import socket
import sys
import time

cluster = json.loads(os.environ["CLUSTER_CONFIG"])
job, _, index = os.environ["POD_NAME"].rpartition("-")
if job not in cluster or not index.isdigit() or int(index) >= len(cluster[job]):
    sys.exit("{} is not a task of the cluster: {}".format(os.environ["POD_NAME"], ", ".join(sorted(cluster))))

own = cluster[job][int(index)].rpartition(":")[0]
for second in range(600):
    try:
        socket.getaddrinfo(own, None)
        break
    except OSError:
        if second % 30 == 0:
            print("waiting for the name", own, "- does the cluster's DNS work?", flush=True)
        time.sleep(1)

import tensorflow as tf

print("task", index, "of", job, "serves at", cluster[job][int(index)], flush=True)
tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=int(index)).join()
