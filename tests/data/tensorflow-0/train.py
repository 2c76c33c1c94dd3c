"""A distributed training as programs of 2016 were written, for TensorFlow 0.11: records, queues, a Supervisor."""

import os

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
flags.DEFINE_integer("steps", 300, "Steps of all workers together")
flags.DEFINE_boolean("sync", False, "Whether the workers' gradients are applied together")
flags.DEFINE_string("logdir", "logs", "Where the chief writes")

task_index = FLAGS.task_index
FEATURES, CLASSES, BATCH = 4, 2, 32


def write_records(path):
    """Points, and on which side of a plane each of them is."""
    points = np.random.RandomState(task_index).randn(500, FEATURES)
    writer = tf.python_io.TFRecordWriter(path)
    for point in points:
        features = tf.train.Feature(float_list=tf.train.FloatList(value=point))
        label = tf.train.Feature(float_list=tf.train.FloatList(value=[float(point.sum() > 0)]))
        example = tf.train.Example(features=tf.train.Features(feature={"label": label, "features": features}))
        writer.write(example.SerializeToString())
    writer.close()


def batches(path):
    reader = tf.TFRecordReader()
    _, serialized = reader.read(tf.train.string_input_producer(tf.train.match_filenames_once(path)))
    wanted = {
        "label": tf.FixedLenFeature([], tf.float32),
        "features": tf.FixedLenFeature([FEATURES], tf.float32),
    }
    example = tf.parse_single_example(serialized, features=wanted)
    return tf.train.shuffle_batch(
        [tf.to_int64(example["label"]), example["features"]], BATCH, capacity=400, min_after_dequeue=100
    )


def model(features):
    halves = tf.split(1, 2, features)
    features = tf.concat(1, [tf.mul(half, 1.0) for half in halves])
    weights = tf.Variable(tf.truncated_normal([FEATURES, CLASSES]), name="weights")
    biases = tf.Variable(tf.zeros([CLASSES]), name="biases")
    tf.histogram_summary("weights", weights)
    return tf.matmul(features, weights) + biases


def one_hot(labels):
    size = tf.shape(labels)[0]
    rows = tf.expand_dims(tf.range(0, size, 1), dim=1)
    places = tf.concat(1, [rows, tf.expand_dims(tf.to_int32(labels), 1)])
    return tf.sparse_to_dense(places, tf.pack([size, CLASSES]), 1.0, 0.0)


def train(cluster, server):
    is_chief, path = task_index == 0, os.path.abspath("points-%d.tfrecords" % task_index)
    write_records(path)
    worker = "/job:worker/task:%d" % task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        labels, features = batches(path)
        logits = model(features)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits, labels))
        distance = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(logits, one_hot(labels)), reduction_indices=[0]
        )
        accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, dimension=1), labels)))
        global_step = tf.Variable(0, name="global_step", trainable=False)
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        if FLAGS.sync:
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer,
                replicas_to_aggregate=1,
                replica_id=task_index,
                total_num_replicas=len(FLAGS.worker_hosts.split(",")),
            )
        train_op = optimizer.minimize(loss, global_step=global_step)
        if FLAGS.sync:
            queue_runner, tokens = optimizer.get_chief_queue_runner(), optimizer.get_init_tokens_op()
            clean_up = optimizer.get_clean_up_op()
        tf.scalar_summary("loss of " + worker, loss)
        tf.scalar_summary("accuracy", accuracy)
        summaries, init_op = tf.merge_all_summaries(), tf.initialize_all_variables()

    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=FLAGS.logdir,
        init_op=init_op,
        summary_op=None,
        saver=tf.train.Saver(),
        global_step=global_step,
        recovery_wait_secs=1,
    )
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    session = supervisor.prepare_or_wait_for_session(server.target, config=config)
    if FLAGS.sync and is_chief:
        supervisor.start_queue_runners(session, [queue_runner])
        session.run(tokens)
    writer, step = tf.train.SummaryWriter(FLAGS.logdir, session.graph), 0
    while step < FLAGS.steps and not supervisor.should_stop():
        _, step, losses, right, text = session.run(
            [train_op, global_step, [loss, distance], accuracy, summaries]
        )
        assert np.allclose(*losses), "both are of the same classes"
        writer.add_summary(text, step)
        if step % 50 == 0 or step >= FLAGS.steps:
            print("Step: {}, loss: {}, accuracy: {}".format(step, losses[0], right))
    writer.close()
    if FLAGS.sync and is_chief:
        session.run(clean_up)


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(cluster, server)


if __name__ == "__main__":
    tf.app.run()
