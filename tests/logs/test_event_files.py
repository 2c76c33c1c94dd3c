"""Event files are decoded as TensorFlow and TensorBoard write them."""

import struct

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2

from tfyard.logs.event_files import EventFileDecoder, Scalar, reading
from tfyard.logs.readings import Reading


def record(*values: summary_pb2.Summary.Value, step: int = 3) -> bytes:
    event = event_pb2.Event(wall_time=12.5, step=step, summary=summary_pb2.Summary(value=values))
    data = event.SerializeToString()
    return struct.pack("<Q", len(data)) + bytes(4) + data + bytes(4)


def simple(tag: str, value: float) -> summary_pb2.Summary.Value:
    return summary_pb2.Summary.Value(tag=tag, simple_value=value)


def tensor(tag: str, *dimensions: int, **content: object) -> summary_pb2.Summary.Value:
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in dimensions]
    shape = tensor_shape_pb2.TensorShapeProto(dim=dims)
    kind = 2 if "double_val" in content else 1
    return summary_pb2.Summary.Value(
        tag=tag, tensor=tensor_pb2.TensorProto(dtype=kind, tensor_shape=shape, **content)
    )


FORMS = {
    "TensorFlow 1": simple("loss", 0.25),
    "a tensor's bytes": tensor("loss", tensor_content=struct.pack("<f", 0.25)),
    "a tensor's float": tensor("loss", float_val=[0.25]),
    "a tensor's double": tensor("loss", double_val=[0.25]),
}


@pytest.mark.parametrize("value", FORMS.values(), ids=FORMS.keys())
def test_a_scalar_is_decoded(value: summary_pb2.Summary.Value) -> None:
    assert EventFileDecoder().decode(record(value)) == [Scalar(12.5, 3, "loss", 0.25)]


def test_what_is_no_scalar_is_left_out() -> None:
    histogram = tensor("weights", 2, float_val=[1.0, 2.0])
    assert EventFileDecoder().decode(record(histogram, simple("loss", 1))) == [Scalar(12.5, 3, "loss", 1.0)]


def test_a_file_that_grows_byte_by_byte_is_decoded_as_a_whole_one() -> None:
    data = b"".join(record(simple("loss", step), step=step) for step in range(5))
    decoder = EventFileDecoder()
    grown = [scalar for byte in data for scalar in decoder.decode(bytes([byte]))]
    assert grown == EventFileDecoder().decode(data)
    assert [scalar.step for scalar in grown] == [0, 1, 2, 3, 4]


def test_a_damaged_file_ends_at_the_damage_and_an_odd_event_is_skipped() -> None:
    good, odd = record(simple("loss", 1)), struct.pack("<Q", 3) + bytes(4) + b"\xff\xff\xff" + bytes(4)
    assert len(EventFileDecoder().decode(good + odd + good)) == 2
    decoder = EventFileDecoder()
    assert len(decoder.decode(good + struct.pack("<Q", 1 << 60) + bytes(100) + good)) == 1
    assert decoder.is_damaged
    assert decoder.decode(good) == []


NAMES = {
    ("loss", "train"): Reading(step=3, values={"loss": 1.0}),
    ("Loss/total_loss", "run"): Reading(step=3, values={"loss/total_loss": 1.0}),
    ("epoch_loss", "train"): Reading(epoch=4, values={"loss": 1.0}),
    ("epoch_accuracy", "validation"): Reading(epoch=4, values={"val_accuracy": 1.0}),
    ("val_auc", "eval"): Reading(step=3, values={"val_auc": 1.0}),
    ("learning_rate", "train"): None,
}


@pytest.mark.parametrize(("names", "expected"), NAMES.items(), ids=map(str, NAMES))
def test_a_scalar_is_a_metric_by_its_name(names: tuple[str, str], expected: Reading | None) -> None:
    tag, folder = names
    assert reading(Scalar(12.5, 3, tag, 1.0), folder) == expected
