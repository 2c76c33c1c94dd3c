"""Images that tests name, by what they run. All other names are images with Python and TensorFlow."""

from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = {
    "alice/tf-mnist:gpu": HERE / "workshop_image.py",
    "wbuchwalter/sample:latest": HERE / "workshop_image.py",
}
BARE = "example/bare:1"
"""An image with Python, and without pip."""
