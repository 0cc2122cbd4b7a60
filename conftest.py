"""The Python of the README, the guide and the tutorials runs as tests, each page in a folder of its own.

With `PHEX_DOCS_PICTURES=1` the pictures that pages draw are copied to docs/pictures.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parent
DATA = Path(os.environ.get("PHEX_DATA", ROOT.parent / "shared" / "data"))


def lacks(*packages: str) -> bool:
    """For comments of pages that skip what cannot run here."""
    return any(importlib.util.find_spec(package) is None for package in packages)


def enter(namespace: dict[str, Any]) -> None:
    """Before the first example of a page."""
    folder = tempfile.TemporaryDirectory()
    namespace.update(_folder=folder, _back=Path.cwd(), lacks=lacks, DATA=DATA)
    os.environ["PHEX_DATA"] = str(DATA)
    os.environ["MPLBACKEND"] = "agg"
    os.chdir(folder.name)


def leave(namespace: dict[str, Any]) -> None:
    """After the last one."""
    os.chdir(namespace["_back"])
    for file in Path(namespace["_folder"].name).iterdir():
        if os.environ.get("PHEX_DOCS_PICTURES") and file.suffix in (".svg", ".png"):
            shutil.copy(file, ROOT / "docs" / "pictures")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    namespace["_folder"].cleanup()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Skipped tests are listed in the file that `PHEX_SKIPPED` names, for the end of `make test`."""
    listing = os.environ.get("PHEX_SKIPPED")
    if (
        listing
        and report.skipped
        and not hasattr(report, "wasxfail")
        and isinstance(report.longrepr, tuple)
    ):
        with Path(listing).open("a", encoding="utf-8") as file:
            file.write(
                f"{report.nodeid.replace(' ', '_')}: {report.longrepr[2].removeprefix('Skipped: ')}\n"
            )


# Sphinx runs it, and it needs Sphinx.
collect_ignore = ["docs/conf.py"]

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/index.md", "docs/how-to/*.md", "docs/tutorials/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
