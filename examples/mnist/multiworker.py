"""Learn digits in step with other workers: every worker has all weights, every step averages their updates.

A loop of our own, because `fit` of Keras 3 does not work under strategies that span several machines.
"""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path

import digits
from tf_quietly import tf

BATCH_PER_WORKER = 50
LEARNING_RATE = 0.2


def main() -> None:
    options = parse_arguments()
    # Before anything else touches TensorFlow: this starts the server that the other workers talk to.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    is_chief = strategy.extended.should_checkpoint  # the chief, or worker 0 where there is none
    training, _, test = digits.load()
    with strategy.scope():
        network = digits.Network()
        step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    checkpoint = tf.train.Checkpoint(network=network, step=step)  # the same names as in evaluate.py
    manager = tf.train.CheckpointManager(checkpoint, str(options.out / "checkpoints"), max_to_keep=None)
    if is_chief:
        checkpoint.restore(manager.latest_checkpoint)
    follow_chief(strategy, [*network.variables, step])
    if step.numpy() > 0:
        print(f"Resumed from the checkpoint of step {step.numpy()}", flush=True)

    learn = make_learner(strategy, network, training)
    while (done := int(step.numpy())) < options.steps:
        count = min(options.report_every, options.steps - done)
        loss = float(learn(tf.constant(count)))
        done = int(step.assign_add(count).numpy())
        if is_chief:
            report(options.out / "logs", done, loss, digits.accuracy(network, test))
            manager.save(checkpoint_number=done)

    if is_chief:
        tf.saved_model.save(network, str(options.out / "model"), signatures=network.logits)
    print(f"Done at step {step.numpy()}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600, help="train up to this step")
    parser.add_argument("--report-every", type=int, default=50, help="steps per printed line and checkpoint")
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="checkpoints, logs and model, by the chief"
    )
    return parser.parse_args()


def report(logs: Path, step: int, loss: float, accuracy: float) -> None:
    print(f"Step: {step}, loss: {loss:.6f}, accuracy: {accuracy:.6f}", flush=True)
    with summary_writer(logs).as_default():
        digits.write_scalar("loss", loss, step)
        digits.write_scalar("accuracy/test", accuracy, step)
        tf.summary.flush()


@functools.cache
def summary_writer(logs: Path) -> tf.summary.SummaryWriter:
    """Made at the first report: workers other than the chief must not leave empty files."""
    return tf.summary.create_file_writer(str(logs))


def follow_chief(strategy: tf.distribute.Strategy, variables: list[tf.Variable]) -> None:
    """Everybody takes the first worker's values: only its disk is sure to hold the checkpoint."""

    @tf.function
    def take() -> None:
        replica = tf.distribute.get_replica_context()
        is_first = tf.equal(replica.replica_id_in_sync_group, 0)
        for variable in variables:
            value = variable.read_value()
            value = tf.where(is_first, value, tf.zeros_like(value))
            variable.assign(replica.all_reduce(tf.distribute.ReduceOp.SUM, value))

    strategy.run(take)


def make_learner(
    strategy: tf.distribute.Strategy, network: digits.Network, training: digits.Split
) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that does so many steps in one call and returns the last loss."""

    def batches(context: tf.distribute.InputContext) -> tf.data.Dataset:
        mine = tf.data.Dataset.from_tensor_slices(tuple(training))
        mine = mine.shard(context.num_input_pipelines, context.input_pipeline_id)
        return mine.shuffle(2000).repeat().batch(BATCH_PER_WORKER)

    iterator = iter(strategy.distribute_datasets_from_function(batches))

    @tf.function
    def learn(count: tf.Tensor) -> tf.Tensor:
        loss = tf.constant(0.0)
        for _ in tf.range(count):
            per_worker = strategy.run(network.learn, args=(*next(iterator), LEARNING_RATE))
            loss = strategy.reduce(tf.distribute.ReduceOp.MEAN, per_worker, axis=None)
        return loss

    return learn


if __name__ == "__main__":
    main()
