"""The seed's own promise: a TfJob needs no driver mounts, because the operator's config knows them.

The three files beside this one are the seed's text: its "vanilla" Job, the TfJob that replaces it, and the
config that the operator reads.
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.planner.builders import NOW, manifests
from tfyard import formats
from tfyard.model import Observed
from tfyard.planner import Accelerator, Site, decide

HERE = Path(__file__).parent / "seed_004"


def read(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text())


def planned() -> Any:
    job = formats.load(read("tfjob.yaml"))
    accelerators = msgspec.convert(
        read("controller_config_file.yaml")["accelerators"], dict[str, Accelerator]
    )
    decision = decide(job, Observed(), Site(accelerators=accelerators), NOW)
    (pod,) = manifests(decision).values()
    return pod["spec"]


def vanilla() -> Any:
    return read("job.yaml")["spec"]["template"]["spec"]


def by_name(entries: list[Any]) -> dict[str, Any]:
    assert len({entry["name"] for entry in entries}) == len(entries), "nothing twice"
    return {entry["name"]: entry for entry in entries}


LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"


def test_the_tfjob_gets_the_volumes_of_the_vanilla_job_and_libcuda() -> None:
    libcuda = {"name": "libcuda", "hostPath": {"path": LIBCUDA}}
    assert by_name(planned()["volumes"]) == {**by_name(vanilla()["volumes"]), "libcuda": libcuda}


def test_the_tfjob_gets_the_mounts_of_the_vanilla_job_and_libcuda() -> None:
    libcuda = {"name": "libcuda", "mountPath": LIBCUDA}
    theirs = by_name(vanilla()["containers"][0]["volumeMounts"])
    assert by_name(planned()["containers"][0]["volumeMounts"]) == {**theirs, "libcuda": libcuda}


def test_the_tfjob_gets_the_environment_of_the_vanilla_job() -> None:
    ours = [entry for entry in planned()["containers"][0]["env"] if entry["name"] != "TF_CONFIG"]
    assert ours == vanilla()["containers"][0]["env"]


def test_the_tfjob_keeps_image_and_restart_policy_of_the_vanilla_job() -> None:
    ours, theirs = planned(), vanilla()
    assert ours["containers"][0]["image"] == theirs["containers"][0]["image"]
    assert ours["restartPolicy"] == theirs["restartPolicy"] == "OnFailure"


def test_the_gpu_is_asked_for_by_the_name_that_nodes_offer_today() -> None:
    assert planned()["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}
