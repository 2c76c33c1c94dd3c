"""Learn to tell two spirals apart, and go on from the last epoch whenever the task is started again.

BackupAndRestore of Keras writes weights, optimizer and the number of the epoch after every epoch, and reads
them when `fit` begins. Whoever stops a task sends SIGTERM and waits for its grace period: the epoch is finished,
and nothing is lost.
"""

import argparse
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
from tf_quietly import tf

keras = tf.keras
POINTS = 5_000
BATCH = 64
STOPPED = 128 + signal.SIGTERM


class Report(keras.callbacks.Callback):
    """Prints every epoch, and ends `fit` after the one in which SIGTERM came."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopping = False
        signal.signal(signal.SIGTERM, self._stop)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        print(f"Epoch: {epoch + 1}, loss: {logs['loss']:.6f}, accuracy: {logs['accuracy']:.6f}", flush=True)
        self.model.stop_training = self.is_stopping

    def _stop(self, *_: object) -> None:
        self.is_stopping = True


def main() -> None:
    options = parse_arguments()
    backup = options.out / "backup"
    if (backup / "training_metadata.json").exists():
        print(f"Going on from {backup}", flush=True)
    model, report = make_model(), Report()
    # Two backups: one of them is whole even if the task is killed while it writes the other. They are not deleted
    # at the end of `fit`, which may only be the end of this attempt.
    restore = keras.callbacks.BackupAndRestore(str(backup), double_checkpoint=True, delete_checkpoint=False)
    points, spiral = make_data()
    model.fit(points, spiral, BATCH, options.epochs, verbose=0, callbacks=[restore, report])
    if report.is_stopping:
        print("Stopped; the next attempt continues", flush=True)
        sys.exit(STOPPED)
    model.save(options.out / "model.keras")
    shutil.rmtree(backup, ignore_errors=True)  # the next training begins with its first epoch
    print(f"Done after {options.epochs} epochs", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("out"), help="the backup, and in the end the model")
    return parser.parse_args()


def make_model() -> keras.Model:
    """Built at once, because BackupAndRestore reads weights before `fit` has seen the first batch."""
    layers = [
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(1, "sigmoid"),
    ]
    model = keras.Sequential([keras.Input((2,)), *layers])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Two spirals, one turned by half a turn."""
    random = np.random.default_rng(0)
    way, spiral = random.uniform(0.5, 3, POINTS), random.integers(0, 2, POINTS)
    angle = 2 * way + np.pi * spiral
    points = np.stack([way * np.cos(angle), way * np.sin(angle)], axis=1) + random.normal(
        0, 0.05, (POINTS, 2)
    )
    return points.astype(np.float32), spiral.astype(np.float32)[:, None]


if __name__ == "__main__":
    main()
