"""Keras' fit that saves after every epoch, ends with the epoch in which SIGTERM came, and goes on where it was."""

import signal
import sys
from pathlib import Path

from tf_quietly import tf

out, keras = Path(sys.argv[1]), tf.keras
inputs = tf.random.normal([4096, 8], seed=1)
data = tf.data.Dataset.from_tensor_slices((inputs, tf.reduce_sum(inputs, axis=1, keepdims=True)))
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")

# Two backups: one of them is whole even if the task is killed while it writes the other. They are not deleted at
# the end of `fit`, which may only be the end of this attempt.
backup = keras.callbacks.BackupAndRestore(out / "backup", double_checkpoint=True, delete_checkpoint=False)
signal.signal(signal.SIGTERM, lambda *_: setattr(model, "stop_training", True))
model.fit(data.repeat().batch(32), epochs=40, steps_per_epoch=200, verbose=2, callbacks=[backup])
sys.exit(143 if model.stop_training else 0)
