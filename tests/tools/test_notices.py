"""`tools/notices.py` and `tools/sbom.py`: what a page is made of and under which licences, in words and as a bill."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]

import notices  # noqa: E402
import sbom  # noqa: E402

HASH = "sha512-" + "A" * 86 + "=="
PROJECT = {"name": "convgrad", "license": "Apache-2.0", "dependencies": ["numpy>=1", "ml_dtypes"]}


class Studio:
    """A folder with packages as npm installs them, and the list that Vite leaves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock: dict[str, Any] = {}
        self.modules = ["index.html", "src/main.tsx"]

    def install(self, name: str, licence: object = "MIT", place: str = "", **more: Any) -> Path:
        """Install a package, of which one module is in the page."""
        path = f"{place}node_modules/{name}"
        folder = self.folder / path
        folder.mkdir(parents=True)
        said = {"name": name, "version": "1.0", "license": licence}
        (folder / "package.json").write_text(json.dumps(said))
        (folder / "LICENSE").write_text(f"Free to all: {name}\n")
        self.lock[path] = {"version": "1.0", "integrity": HASH, **more}
        self.modules.append(f"{path}/index.js")
        return folder

    def packages(self) -> list[notices.Package]:
        (self.folder / "node_modules").mkdir(exist_ok=True)
        (self.folder / notices.MODULES).write_text(json.dumps(self.modules))
        (self.folder / "package-lock.json").write_text(json.dumps({"packages": self.lock}))
        return notices.packages(self.folder)


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


def test_packages_of_the_page_and_no_others(studio: Studio) -> None:
    studio.install("react")
    studio.install("@xyflow/react", "ISC", dependencies={"react": "1", "tiny": "2"})
    studio.install("typescript", "whatever")
    studio.modules.pop()  # installed, but not in the page
    studio.install("react", place="node_modules/@xyflow/react/")
    studio.install("rolldown")
    studio.modules[-1] = "\0rolldown/runtime.js"
    found = studio.packages()
    assert [each.name for each in found] == ["@xyflow/react", "react", "rolldown"]
    assert found[0].license == "ISC" and found[0].needs == ("react", "tiny")
    assert json.loads(notices.listed(found))[0]["needs"] == ["react"]


def test_every_text_is_there_once(studio: Studio) -> None:
    for name in ("b", "a", "other"):
        folder = studio.install(name)
        (folder / "LICENSE").write_text("Free to all\n" if name != "other" else "Free to some\n")
    (folder / "NOTICE.md").write_text("With thanks\n")
    text = notices.notices(studio.packages())
    assert text.startswith(notices.HEAD)
    assert "\na 1.0 (MIT)\nb 1.0 (MIT)\n\nFree to all\n" in text and text.count("to all") == 1
    assert text.endswith("\nother 1.0 (MIT)\n\nFree to some\n\nWith thanks\n")


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "(MIT OR GPL-2.0)", None, "SEE LICENSE IN x"])
def test_an_unknown_licence_is_refused(studio: Studio, licence: object) -> None:
    studio.install("odd", licence)
    with pytest.raises(notices.NoNotice, match=r"odd 1\.0 is under the licence .*; known are 0BSD"):
        studio.packages()


@pytest.mark.parametrize("left", [None, ""])
def test_a_package_without_its_text_is_refused(studio: Studio, left: str | None) -> None:
    folder = studio.install("bare")
    (folder / "LICENSE").unlink() if left is None else (folder / "LICENSE").write_text(left)
    (folder / "NOTICE").write_text("no licence")
    with pytest.raises(notices.NoNotice, match=r"bare 1\.0 comes without the text"):
        studio.packages()


def test_what_is_installed_must_be_what_is_locked(studio: Studio) -> None:
    studio.install("old", version="1.1")
    with pytest.raises(notices.NoNotice, match=r"old 1\.0 .* the lock file has 1\.1"):
        studio.packages()


def test_a_module_of_nobody_is_refused(studio: Studio) -> None:
    studio.modules.append("../elsewhere/x.js")
    with pytest.raises(notices.NoNotice, match="which package the module"):
        studio.packages()
    studio.modules[-1] = "\0made-up"
    with pytest.raises(notices.NoNotice, match="node_modules/made-up is in the page"):
        studio.packages()


def test_a_bill_of_materials(studio: Studio) -> None:
    studio.install("@xyflow/react", dependencies={"react": "1"})
    studio.install("react")
    made = sbom.document(PROJECT, "9.1", json.loads(notices.listed(studio.packages())))
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert made["metadata"]["component"]["purl"] == "pkg:pypi/convgrad@9.1"
    flow, react, types, numpy = made["components"]
    assert (flow["group"], flow["name"], flow["version"]) == ("@xyflow", "react", "1.0")
    assert flow["purl"] == "pkg:npm/%40xyflow/react@1.0"
    assert react["licenses"] == [{"license": {"id": "MIT"}}]
    assert react["hashes"] == [{"alg": "SHA-512", "content": "00" * 64}]
    assert types["purl"] == "pkg:pypi/ml-dtypes" and "version" not in types
    assert numpy["properties"] == [{"name": "convgrad:requirement", "value": "numpy>=1"}]
    refs = [each["bom-ref"] for each in made["components"]]
    whole, *others = made["dependencies"]
    assert whole == {"ref": "pkg:pypi/convgrad@9.1", "dependsOn": refs}
    assert others == [{"ref": refs[0], "dependsOn": [refs[1]]}, {"ref": refs[1], "dependsOn": []}]


def test_the_same_input_gives_the_same_bytes(studio: Studio) -> None:
    for name in ("b", "a"):
        studio.install(name)
    once = studio.packages()
    studio.modules.reverse()
    again = studio.packages()
    assert notices.notices(once) == notices.notices(again)
    bills = [
        sbom.document({**PROJECT, "dependencies": needs}, "9", json.loads(notices.listed(found)))
        for needs, found in ((["a", "b"], once), (["b", "a"], again))
    ]
    assert json.dumps(bills[0]) == json.dumps(bills[1])


def test_the_bill_of_this_clone() -> None:
    """Of its Python side: there may be no page here."""
    made = json.loads(sbom.text(ROOT, with_page=False))
    assert {each["name"] for each in made["components"]} == {"numpy", "ml_dtypes", "llvmlite"}
