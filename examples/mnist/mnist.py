"""One task that learns digits; its model and its summaries outlive it in the output volume."""

import argparse
from datetime import datetime
from pathlib import Path

import digits
import numpy as np
from tf_quietly import tf

BATCH = 100
LEARNING_RATE = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--report-every", type=int, default=10)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="summaries in logs/, SavedModel in model/"
    )
    options = parser.parse_args()

    tf.get_logger().setLevel("INFO")
    training, validation, test = digits.load()
    network = digits.Network()
    learn = tf.function(network.learn)
    random = np.random.default_rng(0)

    with tf.summary.create_file_writer(str(options.out / "logs")).as_default():
        for step in range(options.steps):
            batch = pick(training, random)
            if step % options.report_every == 0 or step == options.steps - 1:
                report(step, network, batch, pick(validation, random))
            learn(tf.constant(batch.images), tf.constant(batch.labels), LEARNING_RATE)

    tf.saved_model.save(network, str(options.out / "model"), signatures=network.logits)
    final = digits.accuracy(network, test)
    tf.get_logger().info(f"Final test accuracy = {final:.1%} (N={len(test.labels)})")


def pick(split: digits.Split, random: np.random.Generator) -> digits.Split:
    chosen = random.choice(len(split.labels), BATCH, replace=False)
    return digits.Split(split.images[chosen], split.labels[chosen])


def report(step: int, network: digits.Network, batch: digits.Split, validation: digits.Split) -> None:
    train_accuracy = digits.accuracy(network, batch)
    log(step, f"Train accuracy = {train_accuracy:.1%}")
    loss = float(digits.cross_entropy(network.logits(tf.constant(batch.images)), batch.labels))
    log(step, f"Cross entropy = {loss:.6f}")
    validation_accuracy = digits.accuracy(network, validation)
    log(step, f"Validation accuracy = {validation_accuracy:.1%} (N={len(validation.labels)})")
    digits.write_scalar("accuracy/train", train_accuracy, step)
    digits.write_scalar("cross_entropy", loss, step)
    digits.write_scalar("accuracy/validation", validation_accuracy, step)


def log(step: int, message: str) -> None:
    now = datetime.now().isoformat(sep=" ", timespec="microseconds")
    tf.get_logger().info(f"{now}: Step {step}: {message}")


if __name__ == "__main__":
    main()
