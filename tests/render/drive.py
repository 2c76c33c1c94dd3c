"""A notebook's program: one operation on each task of the cluster."""

import json
import os

import tensorflow as tf

cluster = json.loads(os.environ["CLUSTER_CONFIG"])
target = f"grpc://{cluster['ps'][0]}"
with tf.Graph().as_default():
    sums = {}
    for job, hosts in cluster.items():
        for task in range(len(hosts)):
            with tf.device(f"/job:{job}/task:{task}"):
                sums[f"/job:{job}/task:{task}"] = tf.reduce_sum(tf.constant([1.0, 2.0, 3.0]))
    with tf.compat.v1.Session(target) as session:
        for device, value in session.run(sums).items():
            print(f"{device}={value}")
