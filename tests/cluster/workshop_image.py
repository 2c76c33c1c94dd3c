"""The program of the images that old documents name: it shows what it was given, and trains."""

import json
import os
from pathlib import Path

DRIVERS = ["/usr/lib/nvidia", "/usr/local/nvidia/bin", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"]


def main() -> None:
    import tensorflow as tf

    print(json.loads(os.environ["TF_CONFIG"])["task"])
    print("drivers", [path for path in DRIVERS if Path(path).exists()], os.environ.get("LD_LIBRARY_PATH"))
    x, out = tf.Variable(2.0), Path("/tmp/tensorflow")
    writer = tf.summary.create_file_writer(str(out / "logs")) if out.exists() else None
    for step in range(20):
        with tf.GradientTape() as tape:
            loss = x * x
        x.assign_sub(0.1 * tape.gradient(loss, x))
        if writer:
            with writer.as_default():
                tf.summary.scalar("loss", loss, step=step)
    if writer:
        tf.train.Checkpoint(x=x).save(str(out / "model" / "ckpt"))
    print("done", float(x))


if __name__ == "__main__":
    main()
