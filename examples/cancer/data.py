"""Wisconsin diagnostic breast cancer data: 569 tumours, 30 measurements each, malignant (1) or benign (0).

W. Wolberg, O. Mangasarian, N. Street, W. Street: "Breast Cancer Wisconsin (Diagnostic)", UCI Machine Learning
Repository, 1993, doi:10.24432/C5DW2B, CC BY 4.0.
`wdbc.csv` has a header and the label first; the values are unchanged.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

FEATURES = 30
HELD_OUT = 171  # 30 percent, never trained on


class Split(NamedTuple):
    features: np.ndarray
    labels: np.ndarray


def load() -> tuple[Split, Split]:
    """Training and held-out rows. The seed is fixed: after a restart, held-out rows must still be unseen."""
    rows = np.loadtxt(Path(__file__).with_name("wdbc.csv"), delimiter=",", skiprows=1, dtype=np.float32)
    np.random.default_rng(0).shuffle(rows)
    train, held_out = rows[HELD_OUT:], rows[:HELD_OUT]
    return Split(train[:, 1:], train[:, :1]), Split(held_out[:, 1:], held_out[:, :1])


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Exact area under the ROC curve: how often a malignant row scores above a benign one (a tie is half)."""
    positive, negative = scores[labels == 1], scores[labels == 0]
    gap = positive[:, None] - negative[None, :]
    return float(np.mean((gap > 0) + 0.5 * (gap == 0)))
