"""Breast-cancer classifier, trained asynchronously: the chief hands out steps, the weights live on a ps.

Without TF_CONFIG (or without a ps in it) the same code trains in this one process.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import data
import numpy as np
from tf_quietly import tf

BATCH = 32
STEPS_PER_CALL = 10  # one remote call does several steps: a call costs about as much as ten steps


class Classifier(tf.Module):
    """Standardise, one hidden layer, one logit. `mean` and `deviation` come from the training rows only."""

    def __init__(self, mean: np.ndarray, deviation: np.ndarray, units: int) -> None:
        super().__init__()
        self.units = units
        self.mean = tf.constant(mean)
        self.deviation = tf.constant(deviation)
        glorot = tf.random.stateless_normal([data.FEATURES, units], seed=[1, 2], stddev=data.FEATURES**-0.5)
        self.hidden = tf.Variable(glorot, name="hidden")
        self.hidden_bias = tf.Variable(tf.zeros([units]), name="hidden_bias")
        self.out = tf.Variable(tf.random.stateless_normal([units, 1], seed=[3, 4], stddev=0.1), name="out")
        self.out_bias = tf.Variable(tf.zeros([1]), name="out_bias")

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        standard = (features - self.mean) / self.deviation
        return tf.tanh(standard @ self.hidden + self.hidden_bias) @ self.out + self.out_bias

    @tf.function(input_signature=[tf.TensorSpec([None, data.FEATURES], tf.float32, name="features")])
    def probability(self, features: tf.Tensor) -> tf.Tensor:
        return tf.sigmoid(self.logits(features))


def main() -> None:
    options = parse_arguments()
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "ps" not in config.get("cluster", {}):
        train(options, tf.distribute.get_strategy(), coordinator=None)
    elif config["task"]["type"] in ("worker", "ps"):
        serve()
    else:
        cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        strategy = tf.distribute.ParameterServerStrategy(cluster)
        train(options, strategy, tf.distribute.coordinator.ClusterCoordinator(strategy))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000, help="train up to this step")
    parser.add_argument("--report-every", type=int, default=100, help="steps per printed line and checkpoint")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate")
    parser.add_argument("--hidden", type=int, default=16, help="units of the hidden layer")
    parser.add_argument("--out", type=Path, default=Path("out"), help="checkpoints, summaries, model")
    return parser.parse_args()


def serve() -> None:
    """Workers and ps only lend their process to the chief. They never end: whoever started them ends them."""
    # gRPC's default is to wait for a dead peer for ever; a worker should tell the chief that the ps is gone.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id, protocol="grpc"
    )
    print(f"Serving as {cluster.task_type} {cluster.task_id}", flush=True)
    server.join()


def train(
    options: argparse.Namespace,
    strategy: tf.distribute.Strategy,
    coordinator: tf.distribute.coordinator.ClusterCoordinator | None,
) -> None:
    training, held_out = data.load()
    with strategy.scope():  # under ParameterServerStrategy this places the variables on the ps
        model = Classifier(training.features.mean(axis=0), training.features.std(axis=0), options.hidden)
        step = tf.Variable(0, dtype=tf.int64, name="step")
    saved = tf.train.Checkpoint(model=model, step=step)
    checkpoints = Checkpoints(options.out / "checkpoints", saved, on_cluster=coordinator is not None)
    if checkpoints.restore():
        print(f"Resumed from the checkpoint of step {step.numpy()}", flush=True)

    run_steps = make_runner(model, training, options.lr, coordinator)
    with tf.summary.create_file_writer(str(options.out / "logs")).as_default():
        while (done := int(step.numpy())) < options.steps:
            count = min(options.report_every, options.steps - done)
            run_steps(count)
            # The chief counts, not the workers: what a killed worker did half is done again and counted once.
            done = int(step.assign_add(count).numpy())
            report(done, evaluate(model, training))
            checkpoints.save(done)

    accuracy, auc = evaluate(model, held_out)[1:]
    export(model, options.out / "model")
    print(f"Held-out: accuracy: {accuracy:.6f}, auc: {auc:.6f}", flush=True)


def make_runner(
    model: Classifier,
    training: data.Split,
    learning_rate: float,
    coordinator: tf.distribute.coordinator.ClusterCoordinator | None,
) -> Callable[[int], None]:
    """A function that does so many steps: here, or on whichever workers are free."""

    @tf.function
    def some_steps(batches: tf.data.Iterator, count: tf.Tensor) -> None:
        for _ in tf.range(count):
            features, labels = next(batches)
            with tf.GradientTape() as tape:
                logits = model.logits(features)
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
            variables = model.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                # Straight into the shared weights, no waiting for the other worker: that is "asynchronous".
                variable.assign_sub(learning_rate * gradient)

    def make_batches() -> tf.data.Dataset:
        # No seed: every worker shuffles in its own order, so that two workers do not repeat each other.
        return tf.data.Dataset.from_tensor_slices(tuple(training)).shuffle(1000).repeat().batch(BATCH)

    if coordinator is None:
        batches = iter(make_batches())
        return lambda count: some_steps(batches, tf.constant(count))

    # A dataset per worker; the coordinator makes it anew on a worker that came back after a crash.
    per_worker_batches = iter(coordinator.create_per_worker_dataset(make_batches))

    def run_steps(count: int) -> None:
        for start in range(0, count, STEPS_PER_CALL):
            size = min(STEPS_PER_CALL, count - start)
            coordinator.schedule(some_steps, args=(per_worker_batches, tf.constant(size)))
        coordinator.join()  # what a lost worker was doing has by now been done by another

    return run_steps


def evaluate(model: Classifier, split: data.Split) -> tuple[float, float, float]:
    """Loss, accuracy and AUC, computed on the chief."""
    logits = model.logits(tf.constant(split.features))
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=split.labels, logits=logits))
    accuracy = np.mean((logits.numpy() > 0) == (split.labels == 1))
    return float(loss), float(accuracy), data.auc(split.labels, logits.numpy())


def report(step: int, metrics: tuple[float, float, float]) -> None:
    loss, accuracy, auc = metrics
    print(f"Step: {step}, loss: {loss:.6f}, accuracy: {accuracy:.6f}, auc: {auc:.6f}", flush=True)
    for name, value in (("loss", loss), ("accuracy", accuracy), ("auc", auc)):
        # tf.summary.scalar needs the tensorboard package, which TensorFlow 2.21 no longer brings along.
        scalar = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
        tf.summary.write(name, tf.constant(value), step=step, metadata=scalar)
    tf.summary.flush()


class Checkpoints:
    """The last three checkpoints, read and written by the chief alone."""

    def __init__(self, directory: Path, checkpoint: tf.train.Checkpoint, on_cluster: bool) -> None:
        self.manager = tf.train.CheckpointManager(checkpoint, str(directory), max_to_keep=3)
        # Otherwise every ps writes its own variables to its own disk, and on a cluster the pieces never meet.
        self.options = tf.train.CheckpointOptions(experimental_io_device="/job:chief" if on_cluster else None)

    def restore(self) -> bool:
        latest = self.manager.latest_checkpoint
        if latest:
            self.manager.checkpoint.restore(latest, options=self.options).assert_consumed()
        return latest is not None

    def save(self, step: int) -> None:
        self.manager.save(checkpoint_number=step, options=self.options)


def export(model: Classifier, directory: Path) -> None:
    """A SavedModel that takes raw measurements. Copied first: the model's own variables live on the ps."""
    local = Classifier(model.mean.numpy(), model.deviation.numpy(), model.units)
    for copy, variable in zip(local.variables, model.variables, strict=True):
        copy.assign(variable.read_value())
    tf.saved_model.save(local, str(directory), signatures=local.probability)


if __name__ == "__main__":
    main()
