"""The bill of materials of a wheel: what is in it that others have made, and what it asks for. CycloneDX 1.6, as JSON.

    python tools/sbom.py        print the one of this clone, with the page that was built last

Wheels have it as `convgrad-*.dist-info/sboms/convgrad.cdx.json` (PEP 770). It is made of `pyproject.toml` and of
`third-party.json`, which `tools/notices.py` writes from what npm installed. The same input gives the same bytes: there
is no time, no random number and no name of a machine in it.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; hatchling brings the same under this name
    import tomli as tomllib

import notices

ROOT = Path(__file__).resolve().parents[1]
NAME = "convgrad.cdx.json"
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(.*)")


def text(root: Path, with_page: bool) -> str:
    """Return the bill of a wheel of these sources, with the packages of the page if the wheel has that."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = _VERSION.search((root / "src/convgrad/_base/version.py").read_text(encoding="utf-8"))
    assert version, "src/convgrad/_base/version.py has no version"
    rows = []
    if with_page:
        static = root / "src" / "convgrad" / "_apps" / "studio" / "static"
        rows = json.loads((static / notices.PACKAGES).read_text(encoding="utf-8"))
    return json.dumps(document(project, version[1], rows), indent=1) + "\n"


def document(project: dict[str, Any], version: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bill: the project, packages that are in it, and packages that are installed with it."""
    whole = _component(
        "library", project["name"], version, _pypi(project["name"], version), project["license"]
    )
    inside = [_bundled(row) for row in rows]
    beside = [_required(each) for each in sorted(project["dependencies"])]
    of_name = {row["name"]: part["bom-ref"] for row, part in zip(rows, inside, strict=True)}
    needs = [
        {"ref": part["bom-ref"], "dependsOn": [of_name[name] for name in row["needs"]]}
        for row, part in zip(rows, inside, strict=True)
    ]
    everything = [part["bom-ref"] for part in (*inside, *beside)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole},
        "components": [*inside, *beside],
        "dependencies": [{"ref": whole["bom-ref"], "dependsOn": everything}, *needs],
    }


def _component(
    kind: str, name: str, version: str | None, purl: str, licence: str | None
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind, "bom-ref": purl}
    group, _, own = name.rpartition("/")
    if group:
        made["group"] = group
    made["name"] = own
    if version is not None:
        made["version"] = version
    if licence is not None:
        made["licenses"] = [{"license": {"id": licence}}]
    return {**made, "purl": purl}


def _bundled(row: dict[str, Any]) -> dict[str, Any]:
    """Return a package of npm's that is in the studio's page."""
    purl = f"pkg:npm/{quote(row['name'])}@{row['version']}"
    made = _component("library", row["name"], row["version"], purl, row["license"])
    algorithm, _, digest = row["integrity"].partition("-")
    if algorithm == "sha512":
        hashed = base64.b64decode(digest).hex()
        made["hashes"] = [{"alg": "SHA-512", "content": hashed}]
    return made


def _required(requirement: str) -> dict[str, Any]:
    """Return a package of PyPI's that is not in the wheel: an installer takes a version that will do."""
    match = _REQUIREMENT.fullmatch(requirement)
    assert match, requirement
    made = _component("library", match[1], None, _pypi(match[1]), None)
    said = {"name": "convgrad:requirement", "value": requirement}
    return {**made, "scope": "required", "properties": [said]}


def _pypi(name: str, version: str | None = None) -> str:
    """Return the address of a package.

    >>> _pypi("ml_dtypes"), _pypi("convgrad", "1.0")
    ('pkg:pypi/ml-dtypes', 'pkg:pypi/convgrad@1.0')
    """
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return f"pkg:pypi/{plain}" + (f"@{version}" if version else "")


if __name__ == "__main__":
    sys.stdout.write(text(ROOT, with_page=True))
