"""`import tensorflow` for programs written for TensorFlow 1, where TensorFlow 2 is installed (`tf1: true`).

The folder above is the first on PYTHONPATH, so Python finds this file before the real package. This file loads the
real package and replaces it by `tensorflow.compat.v1`, without the behaviour of TensorFlow 2, and with functions
from before TensorFlow 1.0. An installed TensorFlow 1 is not changed. In a cluster, this file and the one beside it
are in a ConfigMap, so they need nothing but Python 3.
"""

import importlib.machinery
import importlib.util
import logging
import os
import sys
import types

from . import before_1

CONTRIB = (
    "tf.contrib ended with TensorFlow 1. Instead of contrib.slim and contrib.layers: `pip install tf-slim` and "
    "`import tf_slim as slim`; of contrib.metrics: tf.metrics (streaming_auc is tf.metrics.auc); of contrib.rnn: "
    "tf.nn.rnn_cell; of contrib.learn: tf.keras or a training loop; of contrib.layers.xavier_initializer: "
    "tf.glorot_uniform_initializer"
)
ESTIMATOR = "tf.estimator ended with TensorFlow 2.15: install that version, or use a session or tf.keras"
MNIST = (
    "tensorflow.examples ended with TensorFlow 1. Instead of tutorials.mnist.input_data: "
    "tf.keras.datasets.mnist.load_data(), which returns (images, labels) for training and for testing"
)
ENDED = {"contrib": CONTRIB, "estimator": ESTIMATOR, "examples": MNIST}


def missing(name):
    """Message for an attribute that TensorFlow does not have."""
    if name in ENDED:
        return ENDED[name]
    return "module 'tensorflow' has no attribute {!r}".format(name)


class TensorFlow1(types.ModuleType):
    """The module that programs import."""

    def __init__(self, real, v1):
        super().__init__("tensorflow", real.__doc__)
        self.__file__, self.__spec__, self.__loader__ = real.__file__, real.__spec__, real.__loader__
        # Submodules come from both: tensorflow.keras, and tensorflow.python, which programs import directly.
        self.__path__ = [*v1.__path__, *real.__path__]
        self._v1 = v1

    def __getattr__(self, name):
        try:
            return getattr(self._v1, name)
        except AttributeError:
            raise AttributeError(missing(name)) from None

    def __dir__(self):
        return dir(self._v1)


class EndedModules:
    """The last finder: an import that reaches it fails, and the error names what replaced tensorflow.contrib."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        parent, _, rest = name.partition(".")
        ended = ENDED.get(rest.partition(".")[0]) if parent == "tensorflow" else None
        if ended is not None:
            raise ModuleNotFoundError(ended, name=name)


class NeedsTfKeras:
    """Stands for tf.layers and tf.nn.rnn_cell, which Keras 3 does not have."""

    def __init__(self, name, version):
        self._name, self._version = name, ".".join(version.split(".")[:2])

    def __getattr__(self, attribute):
        text = "{}.{} needs the package tf_keras, which is not installed: pip install tf_keras~={}.0"
        raise AttributeError(text.format(self._name, attribute, self._version))


def find_real():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("tensorflow", path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")
    return spec


def load_real(spec):
    """Loads the real package under the name `tensorflow`, by which its modules import each other."""
    module = importlib.util.module_from_spec(spec)
    sys.modules["tensorflow"] = module
    spec.loader.exec_module(module)
    return module


def without_v2_behavior(v1):
    """Disables the behaviour of TensorFlow 2, without its warning that this will not be supported for ever."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    v1.disable_v2_behavior()
    logger.setLevel(level)


def has_keras_3():
    return getattr(sys.modules.get("keras"), "__version__", "").startswith("3.")


def load():
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True")
    real = load_real(find_real())
    if real.__version__.startswith(("0.", "1.")):
        return
    v1 = real.compat.v1
    without_v2_behavior(v1)
    before_1.give(v1)
    if has_keras_3() and not is_legacy:
        v1.layers = NeedsTfKeras("tf.layers", real.__version__)
        v1.nn.rnn_cell = NeedsTfKeras("tf.nn.rnn_cell", real.__version__)
    sys.meta_path.append(EndedModules)
    sys.modules["tensorflow"] = TensorFlow1(real, v1)


load()
