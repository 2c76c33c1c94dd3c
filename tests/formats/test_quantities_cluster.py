"""Our grammar of amounts, held against the one that decides: a real apiserver's."""

import pytest

from tests.model.test_quantity import NONSENSE, WORTH
from tfyard.formats import quantities
from tfyard.kube import errors, requests
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster

# Without digits it takes them for nothing at all, which nobody means; the CRD of TFJobs refuses them, too.
LENIENT = (".", "Gi")
# Beyond all counting, where it gives up and we need not.
BEYOND = ("1e999999999",)
AMOUNTS = [
    amount
    for amount in (*WORTH, *NONSENSE)
    if isinstance(amount, str | int | float)
    and amount not in (*LENIENT, *BEYOND)
    and len(str(amount)) < 1000
    and str(amount) not in ("inf", "nan")  # JSON has no words for them
]


@pytest.mark.parametrize("amount", AMOUNTS)
async def test_what_we_take_for_an_amount_is_what_the_server_takes(
    control_plane: ControlPlane, namespace: str, amount: object
) -> None:
    container = {"name": "a", "image": "b", "resources": {"limits": {"cpu": amount}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}
    async with control_plane.client() as client:
        try:
            await client.send(requests.create(requests.PODS.path(namespace), pod, {"dryRun": "All"}))
            said = ""
        except errors.KubeError as error:
            said = str(error)
    assert (quantities.problems(amount, ("cpu",)) == []) is (said == ""), said
