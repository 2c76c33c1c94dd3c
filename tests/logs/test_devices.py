"""TensorFlow's version and devices in logs of its generations, and lines that only look like them."""

import pytest

from tfyard.logs.devices import MOST_DEVICES, devices, tensorflow_version

STAMP = "2026-01-01 12:00:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc"
NOW = (
    STAMP + ":2020] Created device /job:worker/replica:0/task:1/device:GPU:{0} with 13764 MB memory:  -> "
    "device: {0}, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"
)
ONE = (
    STAMP + ":1304] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 10741 MB "
    "memory) -> physical GPU (device: 0, name: Tesla K80, pci bus id: 0000:00:1e.0, compute capability: 3.7)"
)
OLDEST = "I tensorflow/core/common_runtime/gpu/gpu_device.cc:975] Creating TensorFlow device (/gpu:0) -> "
OLDEST += "(device: 0, name: GeForce GTX 1080, pci bus id: 0000:01:00.0)"
LISTED = (
    "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU'), "
    "PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]"
)


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (NOW.format(0), ("GPU:0 Tesla T4, 13764 MB",)),
        (f"{NOW.format(0)}\n{NOW.format(1)}", ("GPU:0 Tesla T4, 13764 MB", "GPU:1 Tesla T4, 13764 MB")),
        (ONE, ("GPU:0 Tesla K80, 10741 MB",)),
        (OLDEST, ("GPU:0 GeForce GTX 1080",)),
        (LISTED, ("GPU:0",)),
        (LISTED.replace("GPU", "TPU"), ("TPU:0",)),
        (f"{LISTED}\n{NOW.format(0)}\n{NOW.format(0)}", ("GPU:0 Tesla T4, 13764 MB",)),
        ("[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]", ()),
        ("GPU:0 is what we would like", ()),
        ("", ()),
    ],
)
def test_each_accelerator_is_told_once(log: str, found: tuple[str, ...]) -> None:
    assert devices(f"before\n{log}\nafter") == found


def test_a_program_that_prints_devices_for_ever_does_not_fill_the_record() -> None:
    assert len(devices("\n".join(map(NOW.format, range(1000))))) == MOST_DEVICES


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("TensorFlow version: 2.21.0", "2.21.0"),
        ("Tensorflow version 1.15.0", "1.15.0"),
        ("tf.__version__ = 2.4.1", "2.4.1"),
        ("TF 2.16.1, Keras 3.3.3", "2.16.1"),
        ("using tensorflow v2.0.0-rc1 (GPU)", "2.0.0-rc1"),
        ("TF version: 0.12.1, of 2016", "0.12.1"),
        ("tensorflow_version=2.9.0", "2.9.0"),
        ("Keras 3.3.3", ""),
        ("perftf 1.2.3", ""),
        ("tensorflow/core/util/port.cc:153] oneDNN custom operations are on.", ""),
        ("step 20 loss 0.05", ""),
    ],
)
def test_the_version_is_what_the_log_says(line: str, version: str) -> None:
    assert tensorflow_version(f"before\n{line}\nafter") == version
