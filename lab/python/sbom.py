"""Writes the dependencies of the command as a software bill of materials (CycloneDX 1.5, JSON).

Reads `cargo metadata --locked --format-version 1` from standard input. Development dependencies are
left out.
"""

import json
import sys
from collections import deque
from typing import Any

ROOT = "phex-cli"


def url(package: dict[str, Any]) -> str:
    """The package URL."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def spdx(package: dict[str, Any]) -> str:
    """The licence as an SPDX expression; older packages write a slash."""
    return str(package["license"]).replace("/", " OR ")


def main() -> None:
    """Follows normal and build dependencies from the command."""
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(key for key, package in packages.items() if package["name"] == ROOT)
    needs: dict[str, list[str]] = {}
    queue = deque([root])
    while queue:
        at = queue.popleft()
        if at in needs:
            continue
        kept = [d["pkg"] for d in nodes[at]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
        needs[at] = kept
        queue.extend(kept)
    component = {
        key: {
            "type": "application" if key == root else "library",
            "bom-ref": url(package),
            "name": package["name"],
            "version": package["version"],
            "purl": url(package),
            "licenses": [{"expression": spdx(package)}] if package.get("license") else [],
        }
        for key, package in packages.items()
    }
    others = sorted((key for key in needs if key != root), key=lambda key: url(packages[key]))
    written = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component[root]},
        "components": [component[key] for key in others],
        "dependencies": [
            {
                "ref": url(packages[key]),
                "dependsOn": sorted(url(packages[other]) for other in needs[key]),
            }
            for key in [root, *others]
        ],
    }
    json.dump(written, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
