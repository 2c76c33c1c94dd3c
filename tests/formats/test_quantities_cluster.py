"""tfyard's grammar of quantities, compared with that of a real apiserver."""

import pytest

from tests.model.test_quantity import NONSENSE, WORTH
from tfyard.formats import quantities
from tfyard.kube import errors, requests
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster

# The server takes units without digits for 0, which no user means; the CRD of TFJobs refuses them, too.
LENIENT = (".", "Gi")
# Numbers beyond the server's range; tfyard need not refuse them.
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
async def test_tfyard_accepts_the_quantities_that_the_server_accepts(
    control_plane: ControlPlane, namespace: str, amount: object
) -> None:
    container = {"name": "a", "image": "b", "resources": {"limits": {"cpu": amount}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}}
    async with control_plane.client() as client:
        try:
            await client.send(requests.create(requests.PODS.path(namespace), pod, {"dryRun": "All"}))
            refusal = ""
        except errors.KubeError as error:
            refusal = str(error)
    assert (quantities.problems(amount, ("cpu",)) == []) is (refusal == ""), refusal
