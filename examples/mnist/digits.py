"""Handwritten digits and a small network for them, shared by the three programs of this folder.

E. Alpaydin, C. Kaynak: "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998,
doi:10.24432/C50P49, CC BY 4.0; the 1,797 images of its test set, 8x8 pixels of 0 to 16. A line of
`digits.txt` is a digit and its 64 pixels, one letter each (a = 0 ... q = 16): text
can go wherever source code can go.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from tf_quietly import tf

PIXELS = 64
DIGITS = 10
VALIDATION, TEST = 200, 353  # images never trained on
HIDDEN = 32


class Split(NamedTuple):
    images: np.ndarray
    labels: np.ndarray


def load() -> tuple[Split, Split, Split]:
    """Training, validation and test images. Not shuffled: neighbours tend to share a writer."""
    lines = Path(__file__).with_name("digits.txt").read_text().split()
    labels = np.array(lines[0::2], dtype=np.int64)
    pixels = np.frombuffer("".join(lines[1::2]).encode(), dtype=np.uint8).reshape(-1, PIXELS) - ord("a")
    whole = Split(pixels.astype(np.float32) / 16, labels)
    train = len(labels) - VALIDATION - TEST
    parts = slice(0, train), slice(train, train + VALIDATION), slice(train + VALIDATION, None)
    return tuple(Split(whole.images[part], whole.labels[part]) for part in parts)


class Network(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = _weights([PIXELS, HIDDEN], "hidden")
        self.hidden_bias = _weights([HIDDEN], "hidden_bias")
        self.out = _weights([HIDDEN, DIGITS], "out")
        self.out_bias = _weights([DIGITS], "out_bias")

    @tf.function(input_signature=[tf.TensorSpec([None, PIXELS], tf.float32, name="images")])
    def logits(self, images: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(images @ self.hidden + self.hidden_bias) @ self.out + self.out_bias

    def learn(self, images: tf.Tensor, labels: tf.Tensor, rate: float) -> tf.Tensor:
        """One step downhill; the loss before it."""
        with tf.GradientTape() as tape:
            loss = cross_entropy(self.logits(images), labels)
        variables = self.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(rate * gradient)
        return loss


def _weights(shape: list[int], name: str) -> tf.Variable:
    values = tf.random.stateless_normal(shape, seed=[len(shape), shape[-1]], stddev=shape[0] ** -0.5)
    # MEAN matters under MultiWorkerMirroredStrategy only: an update is then the mean of all workers' updates.
    return tf.Variable(values, name=name, aggregation=tf.VariableAggregation.MEAN)


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy(network: Network, split: Split) -> float:
    return float(np.mean(np.argmax(network.logits(tf.constant(split.images)), axis=1) == split.labels))


def write_scalar(name: str, value: float, step: int) -> None:
    # tf.summary.scalar needs the tensorboard package, which TensorFlow 2.21 no longer brings along.
    scalar = tf.compat.v1.SummaryMetadata(plugin_data={"plugin_name": "scalars"})
    tf.summary.write(name, tf.constant(value, tf.float32), step=step, metadata=scalar)
