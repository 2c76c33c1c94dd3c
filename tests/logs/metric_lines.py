"""Lines that real programs print: what is to be read from each, and lines that only look like metrics."""

from tfyard.logs.readings import Reading


def _read(
    step: int | None = None,
    total: int | None = None,
    epoch: int | None = None,
    epochs: int | None = None,
    **values: float,
) -> Reading:
    names = {name.replace("__", " "): value for name, value in values.items()}
    return Reading(values=names, step=step, total=total, epoch=epoch, epochs=epochs)


REPORTS: dict[str, Reading] = {
    # the plainest
    "step 20 loss 0.05": _read(20, loss=0.05),
    "Epoch 3, Loss: 0.3, Accuracy: 90": _read(epoch=3, loss=0.3, accuracy=90),
    "epoch 1/10 - loss=0.3": _read(epoch=1, epochs=10, loss=0.3),
    "[1/10] train_loss: 0.3": _read(1, 10, train_loss=0.3),
    # TensorFlow 1: Estimator, MonitoredTrainingSession, slim, the tutorials
    "INFO:tensorflow:loss = 0.5, step = 200 (1.2 sec)": _read(200, loss=0.5),
    "INFO:tensorflow:step = 200, loss = 0.5 (1.2 sec)": _read(200, loss=0.5),
    "INFO:tensorflow:Saving dict for global step 400: accuracy = 0.97, global_step = 400, loss = 0.1": _read(
        400, accuracy=0.97, loss=0.1
    ),
    "INFO:tensorflow:Loss for final step: 0.0517.": _read(loss=0.0517),
    "INFO:tensorflow:global step 100: loss = 0.3120 (1.215 sec/step)": _read(100, loss=0.312),
    "INFO:tensorflow:Step 100 per-step time 0.512s loss=0.341": _read(100, loss=0.341),
    "2015-11-04 11:45:45.927302: step 0, loss = 4.68 (2.0 examples/sec; 64.221 sec/batch)": _read(
        0, loss=4.68
    ),
    "Step 100: loss = 2.18 (0.003 sec)": _read(100, loss=2.18),
    "After 200 training step(s), validation cross entropy = 1235.56": _read(
        200, validation__cross__entropy=1235.56
    ),
    "Iter 1280, Minibatch Loss= 1.286, Training Accuracy= 0.507": _read(
        1280, minibatch__loss=1.286, training__accuracy=0.507
    ),
    "Epoch: 0001 cost= 1.182138961": _read(epoch=1, cost=1.182138961),
    "Testing Accuracy: 0.9744": _read(testing__accuracy=0.9744),
    "Minibatch error: 90.6%": _read(minibatch__error=0.906),
    "  eval_accuracy = 0.8676471": _read(eval_accuracy=0.8676471),
    # TensorFlow 2: guides and tutorials
    "Epoch 1, Loss: 0.13, Accuracy: 95.98, Test Loss: 0.06, Test Accuracy: 98.0": _read(
        epoch=1, loss=0.13, accuracy=95.98, test__loss=0.06, test__accuracy=98.0
    ),
    "Training loss (for one batch) at step 200: 0.3177": _read(200, training__loss=0.3177),
    "Training acc over epoch: 0.8120": _read(training__acc=0.812),
    "Loss at step 20: 30.105": _read(20, loss=30.105),
    "Epoch 000: Loss: 1.152, Accuracy: 32.500%": _read(epoch=0, loss=1.152, accuracy=0.325),
    "Epoch 1 Batch 50 Loss 8.9441 Accuracy 0.0031": _read(50, epoch=1, loss=8.9441, accuracy=0.0031),
    "Epoch 1 Loss 2.0346": _read(epoch=1, loss=2.0346),
    "Finished epoch 3, accuracy is 0.984375.": _read(epoch=3, accuracy=0.984375),
    "Epoch: 0, accuracy: 0.858817, train_loss: 0.455391.": _read(
        epoch=0, accuracy=0.858817, train_loss=0.455391
    ),
    "step = 1000: Average Return = 20.5": _read(1000, average__return=20.5),
    "train | step:    100 | steps/sec:   12.3 | output: {'train_loss': 0.31, 'learning_rate': 0.1}": _read(
        100, train_loss=0.31
    ),
    "Step 10: loss tf.Tensor(0.25, shape=(), dtype=float32)": _read(10, loss=0.25),
    "step 10 loss: <tf.Tensor: shape=(), dtype=float32, numpy=0.25>": _read(10, loss=0.25),
    "epoch 2: loss=np.float32(0.25)": _read(epoch=2, loss=0.25),
    # loggers
    "I1118 12:00:00.123456 140735 train.py:55] step 100: loss = 0.3": _read(100, loss=0.3),
    "I1118 12:00:00.123456 140735 logging_writer.py:48] [100] accuracy=0.91, loss=0.3": _read(
        100, accuracy=0.91, loss=0.3
    ),
    "2026-11-18 12:00:00,123 - INFO - epoch=1 step=20 loss=0.3": _read(20, epoch=1, loss=0.3),
    "2026-11-18T12:00:00Z [info     ] metrics    epoch=1 loss=0.3": _read(epoch=1, loss=0.3),
    "[2026-11-18 12:00:00] INFO train: Step 100, loss 0.3": _read(100, loss=0.3),
    '{"step": 100, "loss": 0.3, "lr": 0.001}': _read(100, loss=0.3),
    '{"time": "2026-11-18T12:00:00Z", "level": "info", "epoch": 2, "val_auc": 0.91}': _read(
        epoch=2, val_auc=0.91
    ),
    # what people bring along from elsewhere
    "{'loss': 0.3, 'learning_rate': 5e-05, 'epoch': 1.25}": _read(epoch=1, loss=0.3),
    "{'eval_loss': 0.2, 'eval_accuracy': 0.9, 'epoch': 2.0}": _read(
        epoch=2, eval_loss=0.2, eval_accuracy=0.9
    ),
    "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300024": _read(640, 60000, epoch=1, loss=2.300024),
    "Epoch [1/5], Step [100/600], Loss: 0.3456": _read(100, 600, epoch=1, epochs=5, loss=0.3456),
    "Epoch: [0][10/100]\tTime 0.3 (0.4)\tLoss 6.91 (6.95)\tAcc@1 0.50 (0.10)": _read(
        10, 100, epoch=0, loss=6.91, **{"acc@1": 0.5}
    ),
    "[1,  2000] loss: 2.173": _read(2000, epoch=1, loss=2.173),
    "Test set: Average loss: 0.0498, Accuracy: 9832/10000 (98%)": _read(
        average__loss=0.0498, accuracy=0.9832
    ),
    "iter 100: loss 2.3105, time 12.30ms, mfu 3.10%": _read(100, loss=2.3105),
    "step 250: train loss 1.9623, val loss 2.0694": _read(250, train__loss=1.9623, val__loss=2.0694),
    "step    10/19560 | loss 9.543211 | norm 1.2 | lr 3.0e-04 | (12.1 ms | 43281 tok/s)": _read(
        10, 19560, loss=9.543211
    ),
    "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch  5.5 | loss  7.63 | ppl  2054.10": _read(
        200, 2983, epoch=1, loss=7.63, ppl=2054.1
    ),
    "| end of epoch   1 | time: 20.07s | valid loss  5.52 | valid ppl   250.1": _read(
        epoch=1, valid__loss=5.52, valid__ppl=250.1
    ),
    "Iteration 1, loss = 2.30925": _read(1, loss=2.30925),
    "[10]\ttrain-rmse:0.31\teval-rmse:0.42": _read(10, **{"train-rmse": 0.31, "eval-rmse": 0.42}),
    "epoch:  1, train_loss: 0.2, train_accuracy: 93.1, test_loss: 0.1": _read(
        epoch=1, train_loss=0.2, train_accuracy=93.1, test_loss=0.1
    ),
    "Epoch 0: 100%|██████████| 938/938 [00:12<00:00, 75.03it/s, loss=0.3, v_num=0]": _read(
        938, 938, epoch=0, loss=0.3
    ),
    "Epoch 3/10, batch 20/100, loss: 0.5": _read(20, 100, epoch=3, epochs=10, loss=0.5),
    "[Epoch 1] loss=0.3": _read(epoch=1, loss=0.3),
    "loss: 0.31 (step 1,200)": _read(1200, loss=0.31),
    "Loss: 0.3": _read(loss=0.3),
    "train_step: 30, val/auc=0.91": _read(30, **{"val/auc": 0.91}),
    "global_step=7 d_loss=-1.5e-3 g_loss=2": _read(7, d_loss=-0.0015, g_loss=2),
    "Epoch 1/3\tloss: 0.42\tval_loss: 0.40": _read(epoch=1, epochs=3, loss=0.42, val_loss=0.40),
    "[50]\ttraining's auc: 0.98\tvalid_1's auc: 0.91": _read(
        50, **{"training's auc": 0.98, "valid_1's auc": 0.91}
    ),
    "Epoch 3: train_loss=0,23 val_loss=1,2e-3 val_acc=91,5%": _read(
        epoch=3, train_loss=0.23, val_loss=0.0012, val_acc=0.915
    ),
    "Train Loss: 0,345 Val Loss: 0,401": _read(train__loss=0.345, val__loss=0.401),
    "Episode: 10, total reward: 20.5, epsilon: 0.1": _read(10, total__reward=20.5),
    "Cost after epoch 100: 0.3": _read(epoch=100, cost=0.3),
    "Cost after iteration 100: 0.693": _read(100, cost=0.693),
    "Step    100: train CrossEntropyLoss |  2.30": _read(100, train__crossentropyloss=2.3),
    "Step    100: eval  Accuracy |  0.91": _read(100, eval__accuracy=0.91),
    "[ 100/1000] loss=0.3": _read(100, 1000, loss=0.3),
    "1/10, loss: 0.3": _read(1, 10, loss=0.3),
    '{"epoch": 1, "train": {"loss": 0.3}, "val": {"loss": 0.4}}': _read(
        epoch=1, **{"train/loss": 0.3, "val/loss": 0.4}
    ),
    "12:00:05 | INFO | step 300 | loss 2.5e-03 | lr 1e-4": _read(300, loss=0.0025),
    "[LightGBM] [Info] Iteration:10, valid_0 auc : 0.91": _read(10, **{"valid_0 auc": 0.91}),
}

LOOKALIKES = (
    "Step 2/5 : RUN pip install -r requirements.txt",
    "Step 3 of the recipe",
    "Step 1: accuracy must be above 0.9",
    "Step 1: target accuracy: 0.9",
    "Step 3 failed: error 404",
    "step 3: error: 2",
    "Epoch 3 took 12.5 s",
    "Epoch 3 started at 12:00:05",
    "Epoch 5: early stopping",
    "Epoch 3: val_loss did not improve from 0.30000",
    "Epoch 00001: val_loss improved from inf to 0.39, saving model to /out/m.keras",
    "Epoch 4: ReduceLROnPlateau reducing learning rate to 0.0005.",
    "Restoring model weights from the end of the best epoch: 5.",
    "Time taken for 1 epoch: 30.1 secs",
    "Saved checkpoint: /out/epoch=3-step=100-loss=0.25.ckpt",
    "step 5: saving /out/loss-0.3/model.weights.h5",
    "INFO:tensorflow:global_step/sec: 135.31",
    "INFO:tensorflow:Saving checkpoints for 400 into /out/model.ckpt.",
    "1511213.43: Worker 0: training step 100 done (global step: 105)",
    "steps_per_epoch=100, epochs=3, batch_size=32",
    "loss_scale: 128",
    "loss weights: [1.0, 0.5]",
    "label_smoothing: 0.1",
    "Namespace(epochs=10, loss='mse', lr=0.1, steps=300)",
    "step 1: precision=32, lr=0.1",
    "4 packets transmitted, 4 received, 0% packet loss, time 3004ms",
    "packet loss: 0.3%",
    "test.py:12: error: 3 problems",
    "tests: 5 passed, error: 1",
    '{"epoch": 1700000000, "error": 0}',
    "Step 4: 0 errors, 2 warnings",
    "Seen so far: 12864 samples",
    "Reading step 3/5: float32 precision",
    '  File "train.py", line 5, in step',
    "x.bin:  45%|████▌     | 4.50M/10.0M [00:02<00:02, 2.0MB/s]",
    "batch 5 of mail lost: 3",
    "return 0",
    "return value = 0.5",
    "Estimated cost: 3.50",
    "Loss: 2,345",
    "compile(loss='mse', metrics=['accuracy'])",
    "ERROR: step 3 exit code 1",
    "Loaded checkpoint loss_0.3_step_100.h5",
    "Epoch 2: no improvement in accuracy for 3 epochs",
    "retrying in 5 s (error 2/3)",
    "Early stopping at epoch 5, best accuracy patience 3",
    "12/05, 3 files, accuracy unknown",
    '{"step": {"loss": "unknown"}, "n": {',
)
