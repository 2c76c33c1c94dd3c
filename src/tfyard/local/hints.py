"""What the last lines of a failed task say about the cause, where it is known, and the fix."""

import re

from tfyard.local.interpreter import Interpreter

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_ENDED = ("tensorflow.contrib", "tensorflow.examples")
_GONE = re.compile(r"AttributeError: module 'tensorflow' has no attribute '(\w+)'")
_OF_TENSORFLOW_1 = {
    "ConfigProto", "FixedLenFeature", "GPUOptions", "GraphDef", "InteractiveSession", "Session", "app", "assign",
    "contrib", "decode_raw", "estimator", "flags", "get_collection", "get_default_graph", "get_variable", "gfile",
    "global_variables", "global_variables_initializer", "initialize_all_variables", "layers", "log", "logging",
    "parse_single_example", "placeholder", "python_io", "random_normal", "random_uniform", "reset_default_graph",
    "set_random_seed", "to_float", "to_int32", "trainable_variables", "truncated_normal", "variable_scope",
}  # fmt: skip
"""What programs for TensorFlow 1 use first."""
_SAME_ID = re.compile(r"The same \w+ .*request was received twice")


def hint(interpreter: Interpreter, log: str, *, tf1: bool) -> str:
    """Empty if the log has no such error. `tf1`: the program already gets TensorFlow 1."""
    missing, gone = _MISSING.search(log), _GONE.search(log)
    is_of_tf1 = missing is not None and missing[1].startswith(_ENDED)
    if not tf1 and (is_of_tf1 or (gone is not None and gone[1] in _OF_TENSORFLOW_1)):
        return "the program is written for TensorFlow 1: run it with --tf1 (job file: `tf1: true`)"
    if missing is not None:
        way_out = "activate the environment that has it, or name its interpreter with --python"
        return f"python is {interpreter}, which does not find {missing[1]}; {way_out}"
    if _SAME_ID.search(log):
        # It numbers steps by random generators that have seeds of 32 bits, and compares the last 100,000.
        text = "TensorFlow numbered two steps alike, which happens about once in 40,000"
        return f"{text}; with `restart: on-failure`, the task would have been restarted"
    return ""
