"""The command line, for tests that compare Python with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

TARGET = Path(__file__).resolve().parents[2] / "target"


def command_line() -> str:
    """The newest `phex` below `target`, or else an installed one. Skips the test if there is none."""
    built = [path for path in TARGET.glob("*/phex") if path.is_file()]
    if built:
        return str(max(built, key=lambda path: path.stat().st_mtime))
    installed = shutil.which("phex")
    if installed is None:
        pytest.skip("there is no `phex` to run: `cargo build` makes one")
    return installed
