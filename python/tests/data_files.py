"""The data sets that some tests read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def data_file(name: str) -> Path:
    """A file of the data sets, below `PHEX_DATA` or beside the repository. Skips the test without it."""
    path = Path(os.environ.get("PHEX_DATA", BESIDE)) / name
    if not path.exists():
        pytest.skip(f"there is no {path}; PHEX_DATA names the folder of the data sets")
    return path
