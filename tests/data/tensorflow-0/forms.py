"""Forms from before TensorFlow 1.0 that `tf1: true` understands, beside the forms of TensorFlow 1: all expressions
of a list give the value of its last one. Those that do not are printed."""

from math import exp, log

import numpy as np
import tensorflow as tf

x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0], [7.0, 8.0]])
matrices = tf.constant([[[4.0, 0.0], [0.0, 9.0]]] * 2)
waves = tf.complex([matrices], [matrices])
one_hot, classes = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([1, 0])
image, sound = tf.ones([2, 2, 2, 1]), tf.zeros([1, 8])
sparse = tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])
weights, biases = tf.constant([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), tf.constant([0.1, 0.2, 0.3])
words = tf.constant([[1], [2]], tf.int64)
sampled = (tf.constant([0], tf.int64), tf.constant([[0.5], [0.5]]), tf.constant([0.5]))


def tags(serialized):
    return [each.tag for each in tf.Summary.FromString(session.run(serialized)).value]


def kept_in(collection, summary):
    return summary in tf.get_collection(collection)


SOFTMAX = [log(1 + exp(-1)), log(1 + exp(1))]
SIGMOID = [[log(1 + exp(1)), log(1 + exp(-2))], [log(1 + exp(-3)), log(1 + exp(4))]]
SAMPLED = "num_sampled=1, num_classes=3, sampled_values=sampled"
RENAMED = [
    ["tf.mul(x, y)", "tf.multiply(x, y)"],
    ["tf.sub(x, y)", "tf.subtract(x, y)"],
    ["tf.neg(x)", "tf.negative(x)"],
    ["tf.inv(x)", "tf.reciprocal(x)"],
    ["tf.complex_abs(waves)", "tf.abs(waves)"],
    ["tf.pack([x, y], axis=2)", "tf.stack([x, y], axis=2)"],
    ["tf.unpack(x, axis=1)", "tf.unstack(x, axis=1)"],
    [
        "tf.TensorArray(tf.float32, 2).unpack(x).pack()",
        "tf.TensorArray(tf.float32, 2).unstack(x).stack()",
        "x",
    ],
    ["tf.image.per_image_whitening(image[0])", "tf.image.per_image_standardization(image[0])"],
    ["tf.batch_matrix_diag(x)", "tf.matrix_diag(x)"],
    ["tf.batch_matrix_diag_part(matrices)", "tf.matrix_diag_part(matrices)"],
    ["tf.batch_matrix_set_diag(matrices, x)", "tf.matrix_set_diag(matrices, x)"],
    ["tf.batch_matrix_band_part(matrices, 0, -1)", "tf.matrix_band_part(matrices, 0, -1)"],
    ["tf.batch_matrix_transpose(matrices)", "tf.matrix_transpose(matrices)"],
    ["tf.batch_matrix_determinant(matrices)", "tf.matrix_determinant(matrices)"],
    ["tf.batch_matrix_inverse(matrices)", "tf.matrix_inverse(matrices)"],
    ["tf.batch_cholesky(matrices)", "tf.cholesky(matrices)"],
    ["tf.batch_cholesky_solve(matrices, matrices)", "tf.cholesky_solve(matrices, matrices)"],
    ["tf.batch_matrix_solve(matrices, matrices)", "tf.matrix_solve(matrices, matrices)"],
    [
        "tf.batch_matrix_triangular_solve(matrices, matrices)",
        "tf.matrix_triangular_solve(matrices, matrices)",
    ],
    ["tf.batch_matrix_solve_ls(matrices, matrices)", "tf.matrix_solve_ls(matrices, matrices)"],
    ["tf.batch_self_adjoint_eig(matrices)[0]", "tf.self_adjoint_eig(matrices)[0]"],
    ["tf.batch_self_adjoint_eigvals(matrices)", "tf.self_adjoint_eigvals(matrices)"],
    ["tf.batch_fft(waves)", "tf.fft(waves)"],
    ["tf.batch_ifft(waves)", "tf.ifft(waves)"],
    ["tf.batch_fft2d(waves)", "tf.fft2d(waves)"],
    ["tf.batch_ifft2d(waves)", "tf.ifft2d(waves)"],
    ["tf.batch_fft3d(waves)", "tf.fft3d(waves)"],
    ["tf.batch_ifft3d(waves)", "tf.ifft3d(waves)"],
]
CHANGED = [
    [
        "tf.batch_matmul(matrices, matrices, True)",
        "tf.batch_matmul(x=matrices, y=matrices, adj_x=True)",
        "tf.matmul(matrices, matrices, adjoint_a=True)",
    ],
    ["tf.select(x > 2, x, y)", "tf.select(x > 2, t=x, e=y)", "tf.where(x > 2, x, y)"],
    [
        "tf.listdiff([1, 2], [2])[0]",
        "tf.listdiff([1, 2], [2], out_idx=tf.int64)[0]",
        "tf.setdiff1d([1, 2], [2])[0]",
    ],
    ["tf.list_diff([1, 2], [2])[0]", "[1]"],
    ["tf.batch_svd(matrices, False)", "tf.svd(matrices, compute_uv=False)"],
    ["tf.SparseTensor(indices=[[0]], values=[1], shape=[3]).dense_shape", "[3]"],
    [
        "tf.concat(1, [x, y])",
        "tf.concat(tf.constant(1), (x, y), 'joined')",
        "tf.concat(1, values=[x, y])",
        "tf.concat(concat_dim=1, values=[x, y])",
        "tf.concat([x, y], 1)",
        "tf.concat((x, y), axis=1, name='joined')",
        "tf.concat(values=[x, y], axis=1)",
        "[[1, 2, 5, 6], [3, 4, 7, 8]]",
    ],
    ["tf.concat(0, x)", "tf.concat(0, [x])", "tf.concat(x, 0)", "tf.concat([x], 0)", "x"],
    ["tf.concat(0, [[1], [2]])", "tf.concat([[1], [2]], 0)", "[1, 2]"],
    [
        "tf.split(1, 2, x)",
        "tf.split(1, 2, [[1, 2], [3, 4]])",
        "tf.split(tf.constant(1), 2, value=x, name='parts')",
        "tf.split(split_dim=1, num_split=2, value=x)",
        "tf.split(x, 2, 1)",
        "tf.split(x, num_or_size_splits=2, axis=1)",
        "tf.split(x, [1, 1], 1)",
        "tf.split(x, tf.constant([1, 1]), 1, 2, 'parts')",
        "[[[1], [3]], [[2], [4]]]",
    ],
    ["tf.split(0, 2, x)", "tf.split(x, 2)", "tf.split([[1, 2], [3, 4]], 2)", "[[[1, 2]], [[3, 4]]]"],
    [
        "tf.sparse_split(1, 2, sparse)[1].values",
        "tf.sparse_split(split_dim=1, num_split=2, sp_input=sparse)[1].values",
        "tf.sparse_split(sp_input=sparse, num_split=2, axis=1)[1].values",
        "[2]",
    ],
    [
        "tf.nn.softmax_cross_entropy_with_logits(x, one_hot)",
        "tf.nn.softmax_cross_entropy_with_logits(x, labels=one_hot)",
        "tf.nn.softmax_cross_entropy_with_logits(labels=one_hot, logits=x)",
        "SOFTMAX",
    ],
    [
        "tf.nn.sparse_softmax_cross_entropy_with_logits(x, classes, 'loss')",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=classes)",
        "SOFTMAX",
    ],
    [
        "tf.nn.sigmoid_cross_entropy_with_logits(x, one_hot)",
        "tf.nn.sigmoid_cross_entropy_with_logits(x, targets=one_hot)",
        "tf.nn.sigmoid_cross_entropy_with_logits(logits=x, targets=one_hot)",
        "tf.nn.sigmoid_cross_entropy_with_logits(labels=one_hot, logits=x)",
        "SIGMOID",
    ],
    [
        f"tf.nn.nce_loss(weights, biases, x, words, {SAMPLED})",
        f"tf.nn.nce_loss(weights, biases, words, x, {SAMPLED})",
        f"tf.nn.nce_loss(weights, biases, inputs=x, labels=words, {SAMPLED})",
    ],
    [
        f"tf.nn.sampled_softmax_loss(weights, biases, x, words, {SAMPLED})",
        f"tf.nn.sampled_softmax_loss(weights, biases, tf.to_float(words), x, {SAMPLED})",
        f"tf.nn.sampled_softmax_loss(weights, biases, inputs=x, labels=words, {SAMPLED})",
    ],
    [
        "tf.reverse(x, [False, True])",
        "tf.reverse(x, dims=np.array([False, True]))",
        "tf.reverse(x, tf.constant([False, True]))",
        "tf.reverse(x, [1])",
        "tf.reverse(x, axis=tf.constant([1]))",
        "[[2, 1], [4, 3]]",
    ],
]
SUMMARIES = [
    ["tags(tf.scalar_summary('loss of it', 1.0))", "['loss of it']"],
    ["tags(tf.scalar_summary(['a', 'b'], [1.0, 2.0], name='both'))", "['a', 'b']"],
    ["tags(tf.histogram_summary('weights', x))", "['weights']"],
    ["tags(tf.image_summary('picture', image, 2))", "['picture/image/0', 'picture/image/1']"],
    ["tags(tf.audio_summary('sound', sound, 8.0, max_outputs=1))", "['sound/audio']"],
    [
        "tags(tf.merge_summary([tf.scalar_summary('a', 1.0, []), tf.scalar_summary('b', 1.0, ['own'])]))",
        "['a', 'b']",
    ],
    ["kept_in('own', tf.scalar_summary('c', 1.0, collections=['own']))", "True"],
    ["kept_in('summaries', tf.scalar_summary('d', 1.0, collections=['own']))", "False"],
    ["tags(tf.merge_all_summaries('own'))", "['b', 'c', 'd']"],
    ["'loss of it' in tags(tf.merge_all_summaries())", "True"],
]
STILL_THERE = [
    [
        "tf.reduce_sum(x, reduction_indices=1)",
        "tf.reduce_sum(x, reduction_indices=[1], keep_dims=False)",
        "[3, 7]",
    ],
    ["tf.argmax(x, dimension=1)", "tf.argmax(x, 1)", "[1, 1]"],
    ["tf.expand_dims([1, 2], dim=1)", "[[1], [2]]"],
    ["tf.squeeze([[1, 2]], squeeze_dims=[0])", "[1, 2]"],
    ["tf.div(x, 2.0)", "tf.divide(x, 2.0)"],
    ["tf.get_variable('zero', [2], initializer=tf.zeros_initializer).initial_value", "[0, 0]"],
]


def value(expression):
    return session.run(tf.convert_to_tensor(eval(expression)))


def is_equal(one, other):
    return bool(np.all(one == other) if one.dtype == object else np.allclose(one, other))


session, failed = tf.Session(), 0
for *expressions, last in RENAMED + CHANGED + SUMMARIES + STILL_THERE:
    for expression in expressions:
        try:
            given, wanted = value(expression), value(last)
            problem = "" if is_equal(given, wanted) else f"{given.tolist()}, not {wanted.tolist()}"
        except (AttributeError, TypeError, ValueError, tf.errors.OpError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            print(f"{expression}: {problem}")
            failed += 1
print("forms that failed:", failed)
