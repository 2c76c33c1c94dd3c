"""Which lines are notices of TensorFlow's runtime, and how they are counted."""

import pytest

from tfyard.logs.runtime_notices import Fold, split

NOTICES = [
    "2026-01-31 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
    "2026-01-31 10:00:00.123456: W external/local_xla/xla/tsl/framework/cpu_allocator_impl.cc:83] Allocation of 9",
    "2026-01-31 10:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] "
    "Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT",
    "I0000 00:00:1769853600.123456   12345 cudart_stub.cc:31] Could not find cuda drivers on your machine",
    "E0000 00:00:1769853600.123456    5178 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error",
    "W0000 00:00:1769853600.123456    5178 gpu_device.cc:2344] Cannot dlopen some GPU libraries.",
    "Skipping registering GPU devices...",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
]
OTHERS = [
    "2026-01-31 10:00:00.123456: E tensorflow/core/grpc/server.cc:9] Could not start the server: address in use",
    "2026-01-31 10:00:00.123456: F tensorflow/core/platform/default/env.cc:74] Check failed: ret == 0",
    "E0000 00:00:1769853600.123456   12345 coordination_agent.cc:1] Failed to connect",
    "I0131 10:00:00.123456 140234 train.py:42] loss: 0.3",
    "WARNING:tensorflow:5 out of the last 5 calls triggered tf.function retracing",
    "Epoch 1/3",
    "",
]


@pytest.mark.parametrize("line", NOTICES)
def test_notices_of_the_runtime_are_recognized(line: str) -> None:
    assert split(line) == ("", True)


@pytest.mark.parametrize("line", OTHERS)
def test_errors_and_lines_of_the_program_are_no_notices(line: str) -> None:
    assert split(line) == (line, False)


def test_a_notice_in_the_middle_of_a_progress_bar_leaves_the_bar() -> None:
    assert split("10/32 1s - loss: 0.3" + NOTICES[0]) == ("10/32 1s - loss: 0.3", True)


def test_what_is_folded_is_counted_for_each_task_once() -> None:
    fold = Fold(active=True)
    assert fold.shown("worker-0", "\n".join([NOTICES[0], "hello", "", NOTICES[1]])) == ["hello", ""]
    assert fold.shown("ps-0", NOTICES[0]) == []
    assert fold.total == 3
    assert (fold.report("worker-0"), fold.report("worker-0"), fold.total) == (2, 0, 1)


def test_verbose_folds_nothing() -> None:
    assert Fold(active=False).shown("worker-0", "\n".join(NOTICES)) == NOTICES
