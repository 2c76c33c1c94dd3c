"""The cancer classifier as programs for TensorFlow 1 were written: flags, a Server, a Supervisor, sessions.

`tfyard run --tf1` runs it with TensorFlow 2; the file itself does not know.
"""

import data
import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "host:port of each parameter server, separated by commas")
flags.DEFINE_string("worker_hosts", "", "host:port of each worker, separated by commas")
flags.DEFINE_string("job_name", "worker", "ps or worker")
flags.DEFINE_integer("task_index", 0, "which of them this task is")
flags.DEFINE_integer("steps", 3000, "steps of all workers together")
flags.DEFINE_integer("report_every", 100, "steps between two reports of a worker")
flags.DEFINE_string("checkpoints", "checkpoint", "where the chief saves the model")
FLAGS = flags.FLAGS

BATCH = 64
HIDDEN = 20


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(cluster, server)


def train(cluster, server):
    (training, held_out), me = data.load(), f"/job:worker/task:{FLAGS.task_index}"
    mean, deviation = training.features.mean(axis=0), training.features.std(axis=0)
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
        features = tf.placeholder(tf.float32, [None, data.FEATURES])
        labels = tf.placeholder(tf.float32, [None, 1])
        logits = inference((features - mean) / deviation)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, global_step=global_step)

    supervisor = tf.train.Supervisor(
        is_chief=FLAGS.task_index == 0,
        logdir=FLAGS.checkpoints,
        saver=tf.train.Saver(),
        summary_op=None,
        global_step=global_step,
        recovery_wait_secs=1,
    )
    # Without the filter, a session waits for every worker, also for one that has already ended.
    config = tf.ConfigProto(device_filters=["/job:ps", me])
    random = np.random.RandomState(FLAGS.task_index)
    with supervisor.managed_session(server.target, config=config) as session:
        step, next_report = 0, 0
        while step < FLAGS.steps and not supervisor.should_stop():
            batch = random.randint(len(training.labels), size=BATCH)
            feed = {features: training.features[batch], labels: training.labels[batch]}
            _, loss_value, step = session.run([train_op, loss, global_step], feed)
            if step >= next_report or step >= FLAGS.steps:
                next_report = step - step % FLAGS.report_every + FLAGS.report_every
                scores = session.run(logits, {features: held_out.features})
                report(step, loss_value, scores, held_out.labels)
    print("Done")


def inference(features):
    with tf.variable_scope("hidden"):
        weights = tf.get_variable(
            "weights", [data.FEATURES, HIDDEN], initializer=tf.truncated_normal_initializer(stddev=0.1)
        )
        bias = tf.get_variable("bias", [HIDDEN], initializer=tf.zeros_initializer())
        hidden = tf.nn.tanh(tf.matmul(features, weights) + bias)
    with tf.variable_scope("output"):
        weights = tf.get_variable(
            "weights", [HIDDEN, 1], initializer=tf.truncated_normal_initializer(stddev=0.1)
        )
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        return tf.matmul(hidden, weights) + bias


def report(step, loss, scores, labels):
    accuracy = np.mean((scores > 0) == (labels == 1))
    auc = data.auc(labels, scores)
    print(f"Step: {step}, loss: {loss:.6f}, accuracy: {accuracy:.6f}, auc: {auc:.6f}")


if __name__ == "__main__":
    tf.app.run()
