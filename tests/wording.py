"""What `tfyard why` says, compared with what a table says."""

import re


def is_said(expected: str, text: str) -> bool:
    """Whether a text has this part. `…` and NAMESPACE stand for what differs from one time to the next."""
    parts = re.split("(…|NAMESPACE)", expected)
    pattern = "".join({"…": r".*?", "NAMESPACE": r"[a-z0-9-]+"}.get(each, re.escape(each)) for each in parts)
    return re.search(pattern, text) is not None
