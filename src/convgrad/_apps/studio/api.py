"""What the browser may ask: one row per question. Each takes a request and returns an answer or raises.

The bodies are somebody else's: every field is checked before it is used, and no path is taken from them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from ..._base.errors import ArgumentError, ConvgradError, said, shown
from ..._base.version import __version__
from ..._problem import convolution
from ..graph.operation import Output
from ..graph.table.convolutions import ROWS, problem_of
from ..pages import document, exports, files
from ..pages.build import build
from ..pages.loading import MOST_BYTES, page_name
from ..pages.page import Page
from ..pages.run import why_not
from . import feeds, gallery
from .checks import before, checked, part, why_unfit
from .palette import DTYPES, palette
from .runs import Gone, Runs, TooMany

LONGEST_POLL = 10.0
MOST_STEPS = 1_000_000
_SUFFIXES = {"python": ".py", "cpp": ".cpp", "svg": ".svg"}
_MOST_EXPORTED = 64 << 20
"""Bytes of Variables in an exported program."""


class ErrorAnswer(Exception):
    """An answer that is an error: a status of HTTP and one line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Raw:
    """An answer that is not JSON."""

    content: bytes
    headers: dict[str, str]


@dataclass
class Studio:
    """What a server knows."""

    runs: Runs
    file: Path | None = None
    page: Any = None
    """The document in the file, when the server was started."""
    boot: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True)
class Request:
    """A question: parts of its path, its query, its body."""

    path: tuple[str, ...]
    query: Mapping[str, str]
    body: dict[str, Any]

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if not isinstance(value, str):
            raise ErrorAnswer(400, f"`{name}` must be a text, got {shown(value)}")
        return value

    def page(self) -> Page:
        if "page" not in self.body:
            raise ErrorAnswer(400, "`page` is missing")
        return document.from_json(self.body["page"], "page")

    def data(self, name: str) -> bytes:
        try:
            return base64.b64decode(self.text(name), validate=True)
        except (binascii.Error, ValueError):
            raise ErrorAnswer(400, f"`{name}` must be base64") from None

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self.body.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ErrorAnswer(
                400, f"`{name}` must be a whole number from {least} to {most}, got {shown(value)}"
            )
        return value


Answer = dict[str, Any] | Raw


def _start(studio: Studio, request: Request) -> Answer:
    return {
        "version": __version__,
        "page": studio.page,
        "file": None if studio.file is None else studio.file.name,
        "blocks": palette(),
        "gallery": gallery.listed(),
        "dtypes": DTYPES,
    }


def _health(studio: Studio, request: Request) -> Answer:
    return {"ok": True, "boot": studio.boot}


def _check(studio: Studio, request: Request) -> Answer:
    return checked(request.page())


def _fits(studio: Studio, request: Request) -> Answer:
    page = request.page()
    ids = set(page.by_id())
    why = why_unfit(page, document.wire_from_json(request.body.get("wire"), "wire", ids))
    return {"fits": why is None, "why": why}


def _run(studio: Studio, request: Request) -> Answer:
    page = request.page()
    until = request.body.get("until")
    if until is not None:
        if page.block(until) is None:
            raise ErrorAnswer(400, f"`until`: there is no block {shown(until)} on the page")
        page = part(page, before(page, [until]))
    _seed(page, request.body.get("seed_values") or {})
    steps = request.number("steps", 1, 1, MOST_STEPS)
    return {"run": studio.runs.start(document.write(page), steps, until)}


def _seed(page: Page, given: Any) -> None:
    """Put values on Placeholders and Variables, by their ids."""
    if not isinstance(given, dict):
        raise ErrorAnswer(400, f"`seed_values` must be an object, got {shown(given)}")
    for id, value in given.items():
        block = page.block(id)
        pin = {"Placeholder": "value", "Variable": "initvalues"}.get(block.symbol if block else "")
        if block is None or pin is None:
            raise ErrorAnswer(400, f"`seed_values`: no Placeholder or Variable is {shown(id)}")
        block.pins[pin] = document.value_from_json(value, f"`seed_values` of {shown(id)}")


def _status(studio: Studio, request: Request) -> Answer:
    run = studio.runs.find(request.path[0])
    since = request.query.get("since", "0")
    if not re.fullmatch(r"-?[0-9]{1,12}", since):
        raise ErrorAnswer(400, f"`since` must be a whole number, got {shown(since)}")
    return run.status(int(since), LONGEST_POLL)


def _cancel(studio: Studio, request: Request) -> Answer:
    run = studio.runs.find(request.path[0])
    run.cancel()
    return {"state": run.state}


def _tensor(studio: Studio, request: Request) -> Answer:
    run = studio.runs.find(request.path[0])
    block, pin = (_asked(request, name) for name in ("block", "pin"))
    answer = run.ask(kind="tensor", block=block, pin=pin)
    array = answer["array"]
    shape = ",".join(map(str, array.shape))
    return Raw(array.tobytes(), {"X-Shape": shape, "X-Dtype": answer["dtype"]})


def _asked(request: Request, name: str) -> str:
    if name not in request.query:
        raise ErrorAnswer(400, f"`{name}` is missing in the query")
    return request.query[name]


def _trace(studio: Studio, request: Request) -> Answer:
    run = studio.runs.find(request.path[0])
    index = request.body.get("index")
    if not isinstance(index, list) or any(type(at) is not int or abs(at) > 1 << 62 for at in index):
        raise ErrorAnswer(400, f"`index` must be a list of whole numbers, got {shown(index)}")
    block, pin = request.text("block"), request.text("pin")
    found: dict[str, Any] = run.ask(kind="trace", block=block, pin=pin, index=index)
    return found


def _explained(studio: Studio, request: Request) -> Answer:
    page = request.page()
    id = request.text("block")
    block = page.block(id)
    if block is None:
        raise ErrorAnswer(400, f"there is no block {shown(id)} on the page")
    if block.symbol not in {row.name for row in ROWS}:
        raise ErrorAnswer(400, f"block {id!r} is a {block.symbol}: only convolutions are explained")
    built = build(part(page, before(page, [id])))
    output = built.outputs.get(id, {}).get("output")
    if not isinstance(output, Output):
        raise ErrorAnswer(400, f"block {id!r}: {built.problems.get(id, 'it is not computed')}")
    problem = problem_of(output.operation)
    if problem is None:
        raise ErrorAnswer(400, f"block {id!r}: not all of its sizes are known")
    rows, cols = problem.rows, problem.cols
    call = next(
        call
        for call in convolution.OPS
        if call.kind is problem.kind and call.depthwise is problem.depthwise
    )
    from ..explain import explain  # slow to import, and most sessions never ask

    story = explain(
        call.function,
        problem.input_shape,
        problem.filter_shape,
        (rows.stride, cols.stride),
        [(rows.before, rows.after), (cols.before, cols.after)],
        problem.data_format,
        (rows.dilation, cols.dilation),
        problem.dtype.name,
    )
    return {"text": str(story), "document": story.to_dict()}


def _export(studio: Studio, request: Request) -> Answer:
    language = request.text("language")
    if language not in exports.LANGUAGES:
        raise ErrorAnswer(400, f"`language` must be one of {', '.join(exports.LANGUAGES)}")
    built = build(request.page())
    if language != "svg":
        if built.problems:
            raise ErrorAnswer(400, f"the page cannot be exported: {why_not(built)}")
        size = sum(prod(each.shape) * each.itemsize for each in built.variables.values())
        if size > _MOST_EXPORTED:
            raise ErrorAnswer(
                400, f"its Variables have {size} bytes, too many for a program's text"
            )
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", built.page.name).strip("_") or "page"
    return {"source": exports.export(language, built), "name": f"{name[:60]}{_SUFFIXES[language]}"}


def _import(studio: Studio, request: Request) -> Answer:
    name = request.text("name")
    data = request.data("data")
    dat = request.data("dat") if request.body.get("dat") is not None else None
    title = page_name(Path(name.replace("\\", "/").rpartition("/")[2][-100:] or "page"))
    with tempfile.TemporaryDirectory(prefix="convgrad-") as folder:
        # Readers of enuSpace's pages look for the .dat file beside the page. What a page is, its content says.
        place = Path(folder) / "page.svg"
        place.write_bytes(data)
        if dat is not None:
            place.with_suffix(".dat").write_bytes(dat)
        try:
            page = files.read_page(place)
        except ConvgradError as error:
            raise ErrorAnswer(400, str(error).replace(str(place), shown(name[-100:]))) from None
    if page.name == "page":
        page.name = title
    notes = list(dict.fromkeys(str(note).replace(str(place), name) for note in page.notes))
    return {"page": json.loads(document.write(page)), "notes": notes}


def _gallery(studio: Studio, request: Request) -> Answer:
    found: dict[str, Any] | None = gallery.page(request.path[0])
    if found is None:
        raise ErrorAnswer(404, f"there is no page {request.path[0]!r} in the gallery")
    return found


def _save(studio: Studio, request: Request) -> Answer:
    page = request.page()
    if studio.file is None:
        raise ErrorAnswer(409, "the studio was started without a file: download the page instead")
    files.write_page(page, studio.file)
    studio.page = request.body["page"]
    return {"saved": studio.file.name}


def _feed(studio: Studio, request: Request) -> Answer:
    member = request.body.get("member")
    if member is not None:
        member = request.text("member")
    array, members = feeds.read(request.text("name"), request.data("data"), member)
    return {"tensor": feeds.tensor(array), "members": members}


Handler = Callable[[Studio, Request], Answer]
_ID = r"([A-Za-z0-9_-]{1,64})"
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/api/start", _start),
    ("GET", "/api/health", _health),
    ("GET", f"/api/gallery/{_ID}", _gallery),
    ("POST", "/api/check", _check),
    ("POST", "/api/fits", _fits),
    ("POST", "/api/run", _run),
    ("GET", f"/api/run/{_ID}", _status),
    ("POST", f"/api/run/{_ID}/cancel", _cancel),
    ("GET", f"/api/run/{_ID}/tensor", _tensor),
    ("POST", f"/api/run/{_ID}/trace", _trace),
    ("POST", "/api/explain", _explained),
    ("POST", "/api/export", _export),
    ("POST", "/api/import", _import),
    ("POST", "/api/save", _save),
    ("POST", "/api/feed", _feed),
)
"""Method, path, and who answers."""
_PATTERNS = [(method, re.compile(path), handler) for method, path, handler in ROUTES]
MOST_BODY = min(64 << 20, MOST_BYTES)


def route(method: str, path: str) -> tuple[Handler, tuple[str, ...]]:
    """Return who answers a path, and the parts of it that vary."""
    others = False
    for wanted, pattern, handler in _PATTERNS:
        match = pattern.fullmatch(path)
        if match and wanted == method:
            return handler, match.groups()
        others = others or match is not None
    if others:
        raise ErrorAnswer(405, f"{method} is not for {path}")
    raise ErrorAnswer(404, f"there is nothing at {shown(path)}")


def answer(studio: Studio, handler: Handler, request: Request) -> Answer:
    """Answer a request; what it breaks becomes a status and one line."""
    try:
        return handler(studio, request)
    except Gone as gone:
        raise ErrorAnswer(404, str(gone)) from None
    except TooMany as many:
        raise ErrorAnswer(429, str(many)) from None
    except (ArgumentError, ConvgradError) as error:
        raise ErrorAnswer(400, " ".join(str(error).split())) from None
    except (
        OSError
    ) as error:  # a full disk, no more processes; not the connection, which is used elsewhere
        raise ErrorAnswer(500, f"the system refused it: {error.strerror or said(error)}") from None
