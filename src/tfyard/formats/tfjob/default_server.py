"""The parameter server for a PS that brings no program of its own."""

from tfyard.model import TENSORFLOW_CONTAINER, Manifest

SCRIPT = """\
import json, os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
Server = getattr(tf, "distribute", None) and getattr(tf.distribute, "Server", None) or tf.train.Server
Server(config["cluster"], job_name=config["task"]["type"], task_index=config["task"]["index"]).join()
"""
"""Takes its place from TF_CONFIG and serves for ever; runs on TensorFlow 2 and on the last of TensorFlow 1."""


def default_server(image: str) -> Manifest:
    container = {"name": TENSORFLOW_CONTAINER, "image": image, "command": ["python", "-c", SCRIPT]}
    return {"spec": {"containers": [container], "restartPolicy": "OnFailure"}}
