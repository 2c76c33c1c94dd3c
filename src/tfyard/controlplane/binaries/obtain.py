"""Fills the cache with the control plane's binaries: downloaded, or built where nothing can be downloaded."""

import fcntl
import os
import shutil
from pathlib import Path

from tfyard.controlplane.binaries import HERE, Binaries, MissingBinaries, cache_folder, locate
from tfyard.controlplane.binaries.build import build
from tfyard.controlplane.binaries.download import Mirrors, NoDownload, download
from tfyard.model.callbacks import Say


def find_or_obtain(say: Say, folder: Path | None = None, mirrors: Mirrors | None = None) -> Binaries:
    """The binaries of this machine, else downloaded or built. A folder that the user named is never replaced."""
    try:
        return locate(folder)
    except MissingBinaries:
        if folder or os.environ.get("KUBEBUILDER_ASSETS"):
            raise
        obtain(say, mirrors or Mirrors.chosen(os.environ))
    return locate()


def obtain(say: Say, mirrors: Mirrors, pins: Path = HERE) -> Path:
    """The cache folder of these pins, filled if necessary. A second caller waits for the first one."""
    folder = cache_folder(pins=pins)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fill(folder, mirrors, say, pins)
    return folder


def _fill(folder: Path, mirrors: Mirrors, say: Say, pins: Path) -> None:
    try:
        download(folder, mirrors, say, pins)
    except NoDownload as no_download:
        say(f"==> no download: {no_download}")
        try:
            build(folder, say, pins)
        except MissingBinaries as no_build:
            raise MissingBinaries(f"{no_build}. Nor can it be downloaded: {no_download}") from no_build
        shutil.rmtree(folder.with_name(f"{folder.name}.download"), ignore_errors=True)
