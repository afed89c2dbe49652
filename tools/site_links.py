"""What MkDocs calls while it builds the site (`hooks` in mkdocs.yml): links that leave docs/ stay in the site.

The pages link to the README, to tests and to sources by relative path, as GitHub wants it. In the site README,
CONTRIBUTING, CHANGELOG and SECURITY are pages, and every other file that is linked becomes a page that shows its
text. So the site needs no repository beside it and no address of one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages that live at the root of the repository, and their names in the site."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"""(\]\(|\b(?:href|src|srcset)=")(?![a-z]+:|#)([^)\s"#]+)""")
_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yml": "yaml",
    ".md": "markdown",
    ".c": "c",
    ".sh": "sh",
}


def on_config(config: Any) -> Any:
    """Put the reports, whose number grows, under the page on checking kernels."""
    reports = sorted(Path(config.docs_dir, "reports").glob("*.md"))
    for section in config.nav:
        for entries in section.values():
            if isinstance(entries, list) and {"checking-your-kernel.md"} & _pages(entries):
                entries.extend(
                    {_heading(path): f"reports/{path.name}"}
                    for path in reports
                    if f"reports/{path.name}" not in _pages(entries)
                )
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the root's pages, and one page for each other file that some page links to."""
    from mkdocs.structure.files import File, InclusionLevel

    for name, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8")))
    linked = {
        target
        for page in files.documentation_pages()
        for target in targets(origin(page.src_uri), page.content_string)
        if not target.startswith("docs/") and target not in OUTSIDE
    }
    for target in sorted(linked):
        if (ROOT / target).is_file():
            shown = File.generated(config, site_uri(target), content=source_page(target))
            shown.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(shown)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links of the repository into links of the site."""
    uri = page.file.src_uri
    return markdown if uri.startswith("source/") else rewrite(markdown, uri)


def origin(uri: str) -> str:
    """Return where a page of the site lives in the repository.

    >>> origin("operations/conv2d.md"), origin("readme.md")
    ('docs/operations/conv2d.md', 'README.md')
    """
    back = {site: name for name, site in OUTSIDE.items()}
    return back.get(uri, f"docs/{uri}")


def site_uri(path: str) -> str:
    """Return where a file of the repository lives in the site.

    >>> site_uri("docs/oracle.md"), site_uri("README.md"), site_uri("tests/test_tiny.py")
    ('oracle.md', 'readme.md', 'source/tests/test_tiny.py.md')
    """
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return OUTSIDE.get(path) or f"source/{path}.md"


def targets(page: str, markdown: str) -> Iterable[str]:
    """Return the files a page of the repository links to, as paths from the root."""
    found: list[str] = []
    _outside_fences(
        markdown, lambda text: _LINK.sub(lambda link: found.append(link[2]) or "", text)
    )
    return [posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in found]


def rewrite(markdown: str, uri: str) -> str:
    """Return a page with every link that starts or ends outside docs/ made one of the site.

    >>> rewrite("[all](../README.md), [tests](../tests/test_tiny.py), [next](oracle.md)", "start.md")
    '[all](readme.md), [tests](source/tests/test_tiny.py.md), [next](oracle.md)'
    >>> rewrite("[speed](docs/performance.md#how)", "readme.md")
    '[speed](performance.md#how)'
    """
    page = origin(uri)
    folder = posixpath.dirname(uri)

    def replace(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
        if page.startswith("docs/") and path.startswith("docs/"):
            return link[0]
        return link[1] + posixpath.relpath(site_uri(path), folder or ".")

    return _outside_fences(markdown, lambda text: _LINK.sub(replace, text))


def source_page(path: str) -> str:
    """Return a page that shows a file; the search leaves it out."""
    text = (ROOT / path).read_text(encoding="utf-8")
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n~~~~~~{language}\n{text}\n~~~~~~\n"


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCED.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _pages(entries: list[Any]) -> set[str]:
    """Return the pages of a section, those of sections inside it excepted."""
    pages = [page for entry in entries if isinstance(entry, dict) for page in entry.values()]
    return {page for page in pages if isinstance(page, str)}


def _heading(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
