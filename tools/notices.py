"""Notices of other people's packages in the studio's page, from what npm installed.

    python tools/notices.py     write them for the page that was built last; `tools/studio_page.py` does so by itself

The page is one script made of several packages, and each of their licences asks for its text to go along. Vite leaves
a list of the modules it put in (`studio/vite.config.ts`); of the packages these belong to, `THIRD-PARTY-NOTICES.txt`
beside the page has the texts, and `third-party.json` has names, versions and licences, for `tools/sbom.py`.

A package without a text, or under a licence that nobody has looked at yet, is an error: the page is not shipped then.
Standard library only: `hatch_build.py` uses this file when a wheel is built.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODULES = "node_modules/.bundled.json"
"""In `studio/`: the modules of the page built last."""
NOTICES, PACKAGES = "THIRD-PARTY-NOTICES.txt", "third-party.json"
"""Beside the page."""
LICENCES = frozenset({"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"})
"""Under which a package may be shipped with its notice and nothing else, by their names in SPDX."""
_TEXTS = re.compile(r"(licen[cs]e|copying|notice)", re.IGNORECASE)
"""How the names of files begin that go along."""
_PACKAGE = re.compile(r"(?:.*/)?node_modules/(?:@[^/]+/)?[^/]+")
HEAD = """\
Notices of third parties

The page of convgrad's block studio is built with the packages below. Each is under its own licence, which follows.
convgrad itself is under the Apache License 2.0.
"""
_LINE = "\n" + "-" * 80 + "\n"


class NoNotice(Exception):
    """A package of the page cannot be shipped; the text says why."""


@dataclass(frozen=True)
class Package:
    """A package of which something is in the page."""

    name: str
    version: str
    license: str
    integrity: str
    """Hash of what npm installed, as the lock file has it."""
    needs: tuple[str, ...]
    """Names of packages that it asks for."""
    texts: tuple[str, ...]
    """Its licence, and notices if it has any."""


def packages(studio: Path) -> list[Package]:
    """Return the packages of the page built last, by name."""
    try:
        modules = json.loads((studio / MODULES).read_text(encoding="utf-8"))
        lock = json.loads((studio / "package-lock.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoNotice(f"the list of what is in the page cannot be read: {error}") from None
    folders = {folder for folder in map(folder_of, modules) if folder is not None}
    rows = lock.get("packages", {})
    found = {_package(studio / folder, folder, rows.get(folder, {})) for folder in folders}
    return sorted(found, key=lambda each: (each.name, each.version))


def folder_of(module: str) -> str | None:
    r"""Return the folder of the package a module belongs to, seen from `studio/`; None for our own.

    >>> folder_of("node_modules/@xyflow/react/dist/style.css"), folder_of("src/main.tsx")
    ('node_modules/@xyflow/react', None)
    >>> folder_of("\0rolldown/runtime.js")  # written by the bundler itself
    'node_modules/rolldown'
    """
    if module.startswith("\0"):
        return f"node_modules/{module[1:].partition('/')[0]}"
    match = _PACKAGE.match(module)
    if match:
        return match[0]
    if module.startswith(("src/", "index.html")):
        return None
    raise NoNotice(f"nobody knows which package the module {module!r} belongs to")


def _package(folder: Path, place: str, locked: dict[str, Any]) -> Package:
    try:
        said = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoNotice(f"{place} is in the page, but cannot be read: {error}") from None
    name, version, licence = (said.get(key) for key in ("name", "version", "license"))
    where = f"{name} {version}"
    if version != locked.get("version"):
        raise NoNotice(f"{where} is in the page, but the lock file has {locked.get('version')}")
    if licence not in LICENCES:
        known = ", ".join(sorted(LICENCES))
        raise NoNotice(f"{where} is under the licence {licence!r}; known are {known}")
    names = sorted(path.name for path in folder.iterdir() if _TEXTS.match(path.name))
    texts = [(folder / name).read_text(encoding="utf-8").strip() for name in names]
    if not any(
        text and not name.lower().startswith("notice")
        for name, text in zip(names, texts, strict=True)
    ):
        raise NoNotice(f"{where} comes without the text of its licence")
    needs = {**locked.get("dependencies", {}), **locked.get("peerDependencies", {})}
    return Package(
        name, version, licence, locked.get("integrity", ""), tuple(sorted(needs)), tuple(texts)
    )


def notices(found: list[Package]) -> str:
    """Return the texts of all packages; those that share one stand over it together."""
    together: dict[tuple[str, ...], list[Package]] = {}
    for each in found:
        together.setdefault(each.texts, []).append(each)
    parts = [HEAD]
    for texts, group in together.items():
        names = "\n".join(f"{each.name} {each.version} ({each.license})" for each in group)
        parts.append("\n\n".join((names, *texts)) + "\n")
    return _LINE.join(parts)


def listed(found: list[Package]) -> str:
    """Return the packages as JSON, without their texts."""
    names = {each.name for each in found}
    rows = [
        {
            "name": each.name,
            "version": each.version,
            "license": each.license,
            "integrity": each.integrity,
            "needs": [name for name in each.needs if name in names],
        }
        for each in found
    ]
    return json.dumps(rows, indent=1) + "\n"


def write(root: Path, static: Path) -> None:
    """Write both files beside the page."""
    found = packages(root / "studio")
    (static / NOTICES).write_text(notices(found), encoding="utf-8", newline="\n")
    (static / PACKAGES).write_text(listed(found), encoding="utf-8", newline="\n")


def main() -> int:
    try:
        write(ROOT, ROOT / "src" / "convgrad" / "_apps" / "studio" / "static")
    except NoNotice as why:
        print(f"no notices were written: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
