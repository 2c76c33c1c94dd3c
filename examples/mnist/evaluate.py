"""Evaluate every checkpoint that multiworker.py writes, and end after the one of the last step."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import digits
from tf_quietly import tf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600, help="the trainer's --steps: the last checkpoint")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the trainer's --out")
    parser.add_argument(
        "--patience", type=float, default=600, help="give up when nothing new comes for so long"
    )
    options = parser.parse_args()

    validation = digits.load()[1]
    network, step = digits.Network(), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(network=network, step=step)
    with tf.summary.create_file_writer(str(options.out / "logs" / "evaluation")).as_default():
        for path in new_checkpoints(options.out / "checkpoints", options.patience):
            checkpoint.restore(path).assert_consumed()
            accuracy = digits.accuracy(network, validation)
            print(
                f"Evaluated step {step.numpy()}: accuracy: {accuracy:.6f} (N={len(validation.labels)})",
                flush=True,
            )
            digits.write_scalar("accuracy/evaluation", accuracy, int(step.numpy()))
            # A known last step, not a marker file: one of an earlier run would end this one at once.
            if step.numpy() >= options.steps:
                return 0
    print(f"No new checkpoint for {options.patience:.0f} s", file=sys.stderr)
    return 1


def new_checkpoints(directory: Path, patience: float) -> Iterator[str]:
    """Each checkpoint once. TensorFlow lists one in the state file only after all of it is written."""
    seen: set[str] = set()
    last_news = time.monotonic()
    while time.monotonic() - last_news < patience:
        state = tf.train.get_checkpoint_state(str(directory))
        for path in state.all_model_checkpoint_paths if state else ():
            if path not in seen:
                seen.add(path)
                yield path
                last_news = time.monotonic()
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
