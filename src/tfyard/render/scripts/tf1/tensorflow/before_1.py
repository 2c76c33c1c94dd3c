"""Functions that TensorFlow 1.0 renamed or whose arguments it reordered, for older programs (`tf1: true`).

A call that TensorFlow 1 accepts keeps its meaning. An older call is recognised by something that TensorFlow 1
refuses: a positional argument, a keyword that was renamed since, a number where a tensor must be.
"""

import functools

BATCHED = (
    "cholesky cholesky_solve fft fft2d fft3d ifft ifft2d ifft3d matrix_band_part matrix_determinant matrix_diag "
    "matrix_diag_part matrix_inverse matrix_set_diag matrix_solve matrix_solve_ls matrix_transpose "
    "matrix_triangular_solve self_adjoint_eig self_adjoint_eigvals"
)
RENAMED = {
    "complex_abs": "abs",
    "image.per_image_whitening": "image.per_image_standardization",
    "inv": "reciprocal",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "mul": "multiply",
    "neg": "negative",
    "pack": "stack",
    "sub": "subtract",
    "TensorArray.pack": "TensorArray.stack",
    "TensorArray.unpack": "TensorArray.unstack",
    "train.SummaryWriter": "summary.FileWriter",
    "train.SummaryWriterCache": "summary.FileWriterCache",
    "train.SyncReplicasOptimizerV2": "train.SyncReplicasOptimizer",
    "unpack": "unstack",
}
RENAMED.update(("batch_" + name, name) for name in BATCHED.split())
"""Name before 1.0 -> name since 1.0; the arguments are the same."""
SUMMARIES = {
    "audio_summary": ("AudioSummaryV2", "tag tensor sample_rate max_outputs collections name"),
    "histogram_summary": ("HistogramSummary", "tag values collections name"),
    "image_summary": ("ImageSummary", "tag tensor max_images collections name"),
    "scalar_summary": ("ScalarSummary", "tags values collections name"),
}
"""Name -> operation, arguments. These operations write tags unchanged; tf.summary would remove spaces from names,
and add the name of the scope before them."""


# --- tests whether the positional arguments of a call are in the old order


def always(args, kwargs):
    """For functions whose name TensorFlow 1 does not have."""
    return True


def never(args, kwargs):
    """For functions of which only keywords have changed."""
    return False


def has_positional(args, kwargs):
    """For functions that take only keywords in TensorFlow 1."""
    return len(args) > 0


def begins_with_number(args, kwargs):
    """The first argument of the new order is the tensor to split, which cannot be a single number."""
    return len(args) > 0 and rank(args[0]) == 0


def begins_with_axis(args, kwargs):
    """The values to join are a list or a tensor; the axis is a number."""
    values = args[1] if len(args) > 1 else kwargs.get("values", 0)
    return len(args) > 0 and not isinstance(args[0], (list, tuple)) and bool(rank(values))


def has_mask(args, kwargs):
    """The new second argument, axes to reverse, are numbers; the old one was a mask."""
    return len(args) > 1 and is_boolean(args[1])


def has_inputs_first(args, kwargs):
    """Labels are integers; inputs never are."""
    return len(args) > 3 and is_integer(args[3]) and not is_integer(args[2])


def rank(value):
    """Number of dimensions of a tensor, an array or a number, or None; at least 1 for a list."""
    if isinstance(value, (list, tuple)):
        return 1
    shape = getattr(value, "shape", ())
    return len(shape) if isinstance(shape, tuple) else shape.ndims


def is_boolean(value):
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(isinstance(each, bool) for each in value)
    return dtype(value).startswith("bool")


def is_integer(value):
    return dtype(value).startswith(("int", "uint"))


def dtype(value):
    """Name of a tensor's or an array's type: `int64`, or `int64_ref` of a variable."""
    return getattr(getattr(value, "dtype", None), "name", "")


SAMPLED = (
    "weights biases inputs labels num_sampled num_classes num_true sampled_values remove_accidental_hits "
    "partition_strategy name"
)
CHANGED = {
    "batch_matmul": (
        "a b adjoint_a adjoint_b name",
        {"x": "a", "y": "b", "adj_x": "adjoint_a", "adj_y": "adjoint_b"},
        always,
    ),
    "batch_svd": ("tensor compute_uv full_matrices name", {}, always),
    "concat": ("axis values name", {"concat_dim": "axis"}, begins_with_axis),
    "list_diff": ("x y index_dtype name", {"out_idx": "index_dtype"}, always),
    "listdiff": ("x y index_dtype name", {"out_idx": "index_dtype"}, always),
    "nn.nce_loss": (SAMPLED, {}, has_inputs_first),
    "nn.sampled_softmax_loss": (SAMPLED, {}, has_inputs_first),
    "nn.sigmoid_cross_entropy_with_logits": ("logits labels name", {"targets": "labels"}, has_positional),
    "nn.softmax_cross_entropy_with_logits": ("logits labels dim name", {}, has_positional),
    "nn.sparse_softmax_cross_entropy_with_logits": ("logits labels name", {}, has_positional),
    "reverse": ("tensor dims name", {"dims": "dims"}, has_mask),
    "select": ("condition x y name", {"t": "x", "e": "y"}, always),
    "sparse_split": ("axis num_split sp_input name", {"split_dim": "axis"}, has_positional),
    "SparseTensor.__init__": ("self indices values", {"shape": "dense_shape"}, never),
    "split": (
        "axis num_or_size_splits value name",
        {"split_dim": "axis", "num_split": "num_or_size_splits"},
        begins_with_number,
    ),
    "train.SyncReplicasOptimizer.__init__": (
        "self opt replicas_to_aggregate variable_averages variables_to_average",
        {"replica_id": None},
        never,
    ),
}
"""Name -> arguments in the old order, keyword before 1.0 -> keyword since (None if it was removed), and the test
for an old call that has none of these keywords."""
INSTEAD = {
    "batch_matmul": "matmul",
    "batch_svd": "svd",
    "list_diff": "setdiff1d",
    "listdiff": "setdiff1d",
    "reverse": "raw_ops.Reverse",
    "select": "where",
}
"""Name -> function that an old call really calls; for other names, it is the function of the same name."""


def give(v1):
    """Adds all these functions to tensorflow.compat.v1, except those that this TensorFlow lacks."""
    for name, since in RENAMED.items():
        put(v1, name, get(v1, since))
    for name, (operation, arguments) in SUMMARIES.items():
        put(v1, name, summary(v1, get(v1, "raw_ops." + operation), arguments.split()))
    for name, (arguments, keywords, is_old) in CHANGED.items():
        instead = get(v1, INSTEAD.get(name, name))
        put(v1, name, changed(get(v1, name), instead, arguments.split(), keywords, is_old))
    put(v1, "train.SyncReplicasOptimizer.get_clean_up_op", lambda optimizer: v1.no_op())


def get(v1, name):
    """The attribute with this dotted name; None if this TensorFlow does not have it."""
    for part in name.split("."):
        v1 = getattr(v1, part, None)
    return v1


def put(v1, name, function):
    place, _, last = name.rpartition(".")
    place = get(v1, place) if place else v1
    if place is not None and function is not None:
        setattr(place, last, function)


def summary(v1, operation, arguments):
    def call(*args, **kwargs):
        given = by_name(arguments, args, kwargs)
        collections = given.pop("collections", None)
        made = operation(**given)
        for collection in [v1.GraphKeys.SUMMARIES] if collections is None else collections:
            v1.add_to_collection(collection, made)
        return made

    return operation and call


def changed(current, instead, arguments, keywords, is_old):
    """A function that also accepts old calls. `current` is TensorFlow 1's function of that name, if it has one."""

    @functools.wraps(current or instead)
    def call(*args, **kwargs):
        if not is_old(args, kwargs) and not keywords.keys() & kwargs.keys():
            return current(*args, **kwargs)
        renamed = {keywords.get(name, name): value for name, value in kwargs.items()}
        renamed.pop(None, None)
        return instead(**by_name(arguments, args, renamed))

    return instead and call


def by_name(arguments, args, kwargs):
    if len(args) > len(arguments):
        raise TypeError("at most {} arguments: {}".format(len(arguments), ", ".join(arguments)))
    given = dict(zip(arguments, args))
    if given.keys() & kwargs.keys():
        raise TypeError("given twice: {}".format(", ".join(sorted(given.keys() & kwargs.keys()))))
    return dict(given, **kwargs)
