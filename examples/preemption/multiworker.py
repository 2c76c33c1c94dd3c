"""Learn a line in step with other workers; when one of them is asked to go, all save at the same step and end.

PreemptionCheckpointHandler counts the calls of `run`, so that all workers agree on the last step. After the save
they end with exit code 42, and tfyard starts all of them again. SIGTERM may come too late, so worker 0 also saves
now and then. All workers must see the checkpoints: `/out` is one volume.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from tf_quietly import tf

SAVE_EVERY = 50


def main() -> None:
    options = parse_arguments()
    # Before anything else touches TensorFlow: this starts the server that the other workers talk to.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        slope = tf.Variable(0.0)
        step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    checkpoint, folder = tf.train.Checkpoint(slope=slope, step=step), str(options.out / "checkpoints")
    saver = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2, checkpoint_name="step")
    # This also restores the last checkpoint.
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(
        strategy.cluster_resolver, checkpoint, folder
    )
    print(f"Begins at step {step.numpy()}", flush=True)

    learn = make_learner(strategy, slope, step)
    while step.numpy() < options.steps:
        loss = handler.run(learn)
        done = int(step.numpy())
        if done % SAVE_EVERY == 0 and strategy.extended.should_checkpoint:
            saver.save(checkpoint_number=done)
            print(f"Step: {done}, loss: {float(loss):.6f}", flush=True)
        time.sleep(options.pause)
    print(f"Done at step {step.numpy()}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600, help="train up to this step")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds of each step beside the training")
    parser.add_argument("--out", type=Path, default=Path("out"), help="checkpoints, for all workers")
    return parser.parse_args()


def make_learner(
    strategy: tf.distribute.Strategy, slope: tf.Variable, step: tf.Variable
) -> Callable[[], tf.Tensor]:
    """One step: every worker looks at points of its own, and all take the average of their updates."""

    def gradient() -> tf.Tensor:
        points = tf.random.normal([32])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * points - 3.0 * points) ** 2)
        context = tf.distribute.get_replica_context()
        slope.assign_sub(0.02 * context.all_reduce("mean", tape.gradient(loss, slope)))
        return loss

    @tf.function
    def learn() -> tf.Tensor:
        loss = strategy.reduce("mean", strategy.run(gradient), axis=None)
        step.assign_add(1)
        return loss

    return learn


if __name__ == "__main__":
    main()
