"""Quantities as Kubernetes reads them."""

from decimal import Decimal

import pytest

from tfyard.model.quantity import amount, is_quantity

WORTH: dict[object, str] = {
    "128": "128",
    128: "128",
    "1.5": "1.5",
    0.5: "0.5",
    ".5": "0.5",
    "5.": "5",
    "+1": "1",
    "-1Gi": str(-(1024**3)),
    "8Gi": str(8 * 1024**3),
    "500M": "500000000",
    "1e9": "1e9",
    "1e3": "1000",
    "1E3": "1000",
    "1E-3": "0.001",
    "1E": "1e18",
    "1Ei": str(1024**6),
    "500m": "0.5",
    "7u": "0.000007",
    "7n": "0.000000007",
    "2k": "2000",
    " 2k ": "2000",
    1e21: "9223372036854775807",
    "1e999999999": "9223372036854775807",
    "16Ei": "9223372036854775807",
    "9" * 2_000_000 + "k": "9223372036854775807",
}
NONSENSE = (
    "", " ", ".", "Gi", "8GB", "8gb", "8gi", "8K", "1e", "1e3Gi", "1e1.5", "100 Mi", "1,5", "--1", "lots", "٣",
    True, None, float("inf"), float("nan"),
)  # fmt: skip


@pytest.mark.parametrize(("value", "worth"), WORTH.items(), ids=[str(value)[:20] for value in WORTH])
def test_a_quantity_is_worth_what_kubernetes_takes_it_for(value: object, worth: str) -> None:
    assert is_quantity(value)
    assert amount(value) == Decimal(worth)


@pytest.mark.parametrize("value", NONSENSE)
def test_nonsense_is_no_quantity(value: object) -> None:
    assert not is_quantity(value)
    assert amount(value) is None
