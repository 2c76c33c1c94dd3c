"""Distributed training in the manner of TensorFlow 1: hosts as flags, and each worker builds the graph.

The ps hold the variables and never end. Each worker trains at its own pace on the shared variables; worker 0
is the chief: it initialises them, saves checkpoints and writes summaries.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tf_quietly import tf

v1 = tf.compat.v1
FEATURES = 20
BATCH = 64
LEARNING_RATE = 0.005


class Graph(NamedTuple):
    features: tf.Tensor
    labels: tf.Tensor
    logits: tf.Tensor
    loss: tf.Tensor
    step: tf.Variable
    learn: tf.Operation


def main() -> None:
    options = parse_arguments()
    cluster = tf.train.ClusterSpec({"ps": options.ps_hosts, "worker": options.worker_hosts})
    server = v1.train.Server(cluster, job_name=options.job_name, task_index=options.task_index)
    if options.job_name == "ps":
        print(f"Serving as ps {options.task_index}", flush=True)
        server.join()  # for ever: whoever started a ps ends it once the workers are done
    else:
        me = f"/job:worker/task:{options.task_index}"
        # Variables go round the ps in turn, everything else stays on this worker.
        with (
            tf.Graph().as_default(),
            v1.device(v1.train.replica_device_setter(worker_device=me, cluster=cluster)),
        ):
            train(options, build_graph(), server.target, me)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ps_hosts", type=hosts, required=True, help="host:port,host:port")
    parser.add_argument("--worker_hosts", type=hosts, required=True, help="host:port,host:port")
    parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--steps", type=int, default=2000, help="steps of all workers together")
    parser.add_argument("--report_every", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("out"), help="the chief's checkpoints and summaries")
    return parser.parse_args()


def hosts(text: str) -> list[str]:
    return text.split(",")


def build_graph() -> Graph:
    features = v1.placeholder(tf.float32, [None, FEATURES])
    labels = v1.placeholder(tf.float32, [None, 1])
    weights = v1.get_variable("weights", [FEATURES, 1], initializer=tf.zeros_initializer())
    bias = v1.get_variable("bias", [1], initializer=tf.zeros_initializer())
    step = v1.train.get_or_create_global_step()
    logits = features @ weights + bias
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    learn = v1.train.GradientDescentOptimizer(LEARNING_RATE).minimize(loss, global_step=step)
    v1.summary.scalar("loss", loss)
    return Graph(features, labels, logits, loss, step, learn)


def train(options: argparse.Namespace, graph: Graph, target: str, me: str) -> None:
    features, labels = make_data()
    random = np.random.default_rng(options.task_index)  # two workers must not draw the same batches
    done = next_report = 0
    with open_session(options, target, me) as session:
        while not session.should_stop():
            batch = random.integers(len(labels), size=BATCH)
            feed = {graph.features: features[batch], graph.labels: labels[batch]}
            done = int(session.run([graph.step, graph.learn], feed)[0])
            if done >= next_report and not session.should_stop():
                everything = {graph.features: features, graph.labels: labels}
                report(done, labels, *session.run([graph.loss, graph.logits], everything))
                # The other worker's steps count as well, so the reported ones are rarely round numbers.
                next_report = done - done % options.report_every + options.report_every
    print("Done", flush=True)


def report(step: int, labels: np.ndarray, loss: float, logits: np.ndarray) -> None:
    accuracy = np.mean((logits > 0) == (labels == 1))
    numbers = f"loss: {loss:.6f}, accuracy: {accuracy:.6f}, auc: {auc(labels, logits):.6f}"
    print(f"Step: {step}, {numbers}", flush=True)


def open_session(options: argparse.Namespace, target: str, me: str) -> v1.train.MonitoredSession:
    # Without this filter a session waits for all workers. One that starts when another has already ended
    # would wait for ever.
    config = v1.ConfigProto(device_filters=["/job:ps", me])
    hooks = [v1.train.StopAtStepHook(last_step=options.steps)]
    if options.task_index > 0:
        return v1.train.MonitoredSession(Follower(target, config), hooks)
    return v1.train.MonitoredTrainingSession(
        master=target,
        # One file, written by the chief. The default lets each ps write its part, on a disk of its own.
        scaffold=v1.train.Scaffold(saver=v1.train.Saver(sharded=False)),
        checkpoint_dir=str(options.out),
        save_checkpoint_steps=500,
        save_summaries_steps=100,
        log_step_count_steps=None,
        hooks=hooks,
        config=config,
    )


class Follower(v1.train.SessionCreator):
    """Waits until the chief has initialised the variables.

    MonitoredTrainingSession can do that as well, but looks only every 30 seconds: a worker that is a moment
    too early would miss most of this training.
    """

    def __init__(self, target: str, config: v1.ConfigProto) -> None:
        self.target = target
        self.config = config

    def create_session(self) -> v1.Session:
        scaffold = v1.train.Scaffold().finalize()
        manager = v1.train.SessionManager(
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            recovery_wait_secs=1,
        )
        return manager.wait_for_session(self.target, self.config)


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points that overlap a little, the same on every worker."""
    random = np.random.default_rng(2016)
    labels = random.integers(2, size=(1024, 1)).astype(np.float32)
    centre = random.normal(size=(1, FEATURES)) * 0.35
    points = random.normal(size=(1024, FEATURES)) + (2 * labels - 1) * centre
    return points.astype(np.float32), labels


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """How often a point of class 1 scores above one of class 0 (a tie is half)."""
    gap = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))


if __name__ == "__main__":
    main()
