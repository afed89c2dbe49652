"""Pages as enuSpace writes them: SVG of version 3 and 4 in UTF-16 with a `.dat`, and the JSON of its plug-in.

Written from the description of the format, apart from the readers, so that a mistake in one shows in the other.
`block` and `wire` make the parts of a `Page`; `save` writes one into a folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from convgrad._apps.pages.page import Block, Page, Value, Wire

TYPES = {"int32": "int", "float32": "float", "float64": "double", "bool": "bool"}
BINARY_FROM = 200
"""Elements from which on a value lies in the `.dat`."""


def value(content: Any) -> Value:
    """Return what stands on a pin: a text, or an array whose dtype gives the type."""
    if isinstance(content, Value):
        return content
    if isinstance(content, str):
        return Value(content)
    array = np.asarray(content)
    return Value("", TYPES[array.dtype.name], array.shape, array)


def block(
    id: str,
    symbol: str,
    at: tuple[float, float] = (0, 0),
    task: str = "tensorflow",
    **pins: Any,
) -> Block:
    """Return a block; pins are texts or arrays."""
    values = {name: value(each) for name, each in pins.items()}
    return Block(id, symbol, values, float(at[0]), float(at[1]), task)


def wire(text: str, hidden: bool = False) -> Wire:
    """Return the wire of a text such as `a.output > b.x` or `g.grad_outputs[2] > u.delta`."""
    source, target = (end.strip().split(".") for end in text.split(">"))
    pin, _, index = source[1].partition("[")
    return Wire(source[0], pin, int(index.rstrip("]")) if index else None, *target, hidden)


def spelt(array: np.ndarray, version: int) -> str:
    """Write the numbers of an array as its version does."""
    flat = array.reshape(-1)
    if array.dtype == bool:
        words = ["1" if each else "0" for each in flat]
    elif array.dtype.kind == "i":
        words = [str(each) for each in flat]
    else:
        words = [f"{each:.6f}" if version == 3 else f"{each:g}" for each in flat]
    if version == 3 or not array.ndim:
        return ";".join(words)
    return "{" + ",".join(words) + "}"


class Dat:
    """The file beside a page, as it grows."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, array: np.ndarray) -> int:
        at = len(self.data)
        self.data += array.astype(array.dtype.newbyteorder("<")).tobytes()
        return at


def _element(name: str, attributes: dict[str, str], version: int, inside: str = "") -> str:
    """Write an element: one attribute per line in version 3, one element per line in version 4."""
    gap = "\n\t" if version == 3 else " "
    words = "".join(f"{gap}{key}={quoteattr(text)}" for key, text in attributes.items())
    return f"<{name}{words}>\n{inside}</{name}>\n" if inside else f"<{name}{words}/>\n"


def pin_element(name: str, pin: Value, version: int, dat: Dat) -> str:
    """Write a pin with its value, as text or in the `.dat`."""
    shape = "".join(f"[{size}]" for size in pin.shape or ())
    attributes = {
        "variable": f"#{name}{shape}",
        "auto": "true",
        "shape": shape,
        "var-type" if version == 3 else "type": pin.type,
    }
    if pin.array is not None and pin.array.size >= BINARY_FROM:
        attributes |= {"save-type": "binary", "binary-pos": str(dat.add(pin.array))}
    elif pin.array is not None:
        attributes["value"] = spelt(pin.array, version)
    else:
        attributes["value"] = pin.text
    return _element("pg-set-pin", attributes, version)


def svg_text(page: Page, version: int = 3, drawing: str = "") -> tuple[str, bytes]:
    """Write a page with some elements that only draw; return its text and the bytes of its `.dat`."""
    dat = Dat()
    parts = []
    for each in page.blocks:
        attributes = {
            "id": each.id,
            "type": each.task,
            "xlink:href": f"#{each.symbol}",
            "transform": f"translate({each.x:g},{each.y:g}) rotate(0) scale(1, 1)",
            "x": "0",
            "y": "0",
        }
        pins = "".join(pin_element(name, pin, version, dat) for name, pin in each.pins.items())
        parts.append(_element("use", attributes, version, pins))
    for at, each in enumerate(page.wires):
        index = "" if each.source_index is None else f"[{each.source_index}]"
        link = {
            "id": f"ID_LINK{at % 3}",  # ids of links repeat
            "from-id": each.source,
            "param-from": each.source_pin + index,
            "to-id": each.target,
            "param-to": each.target_pin,
        }
        link |= {"hidden": "true"} if each.hidden else {}
        inside = _element("pg-link", link, version)
        line = {"id": "ID_LINE", "fill": "none", "transform": "translate(1,2)", "points": "0,0 9,9"}
        parts.append(_element("polyline", line, version, inside))
    parts.insert(
        len(parts) // 2, "<text id='ID_T' x='1'>a &lt;label&gt;\r\nof two lines</text>\n" + drawing
    )
    root = {
        "xmlns": "http://www.w3.org/2000/svg",
        "xmlns:xlink": "http://www.w3.org/1999/xlink",
        "width": f"{page.width:g}",
        "height": f"{page.height:g}",
        "enuspace-version": "3.0.1.18" if version == 3 else "4.0.0.1",
    }
    head = '<?xml version="1.0" encoding="UTF-16"?>\n'
    return head + _element("svg", root, version, "".join(parts)), dat.data


def json_text(page: Page, separator: str = ";") -> tuple[str, bytes]:
    """Write what the plug-in loads; return its text and the bytes of its `.dat`."""
    dat = Dat()
    objects = []
    wires = page.wires_by_pin()
    for each in page.blocks:
        inputs, outputs = [], []
        names = dict.fromkeys([*each.pins, *(pin for id, pin in wires if id == each.id)])
        for name in names:
            pin = each.pins.get(name, Value())
            links = wires.get((each.id, name), [None])
            entries = outputs if name.startswith("result_") else inputs
            entries += [_pin_entry(name, pin, link, separator, dat) for link in links]
        objects.append(
            {"symbol-name": f"#{each.symbol}", "id": each.id, "input": inputs, "output": outputs}
        )
    return json.dumps({"object": objects}, indent=1), dat.data


def _pin_entry(name: str, pin: Value, link: Wire | None, separator: str, dat: Dat) -> dict[str, str]:  # fmt: skip
    entry = {
        "pin-name": name,
        "pin-type": pin.type,
        "pin-save": "text",
        "pin-shape": "".join(f"[{size}]" for size in pin.shape or ()),
        "pin-interface": "Input",
        "pin-datatype": "",
        "pin-initial": pin.text,
    }
    if pin.array is not None and pin.array.size >= BINARY_FROM:
        entry |= {"pin-save": "binary", "pin-binary-pos": str(dat.add(pin.array))}
    elif pin.array is not None:
        entry["pin-initial"] = spelt(pin.array, 3).replace(";", separator)
    index = "" if link is None or link.source_index is None else f"[{link.source_index}]"
    return entry | {
        "in-symbol-name": "#Any" if link else "",
        "in-symbol-id": link.source if link else "",
        "in-symbol-pin-name": link.source_pin + index if link else "",
        "in-symbol-pin-interface" if link else "in-symbol-pin-type": "Output" if link else "",
    }


def save(page: Page, folder: Path, form: int | str = 3, drawing: str = "") -> Path:
    """Write a page into a folder: `form` is version 3 or 4, or `json`. Return its path."""
    text, dat = json_text(page) if form == "json" else svg_text(page, int(form), drawing)
    path = folder / f"{page.name}.{'json' if form == 'json' else 'svg'}"
    path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    path.with_suffix(".dat").write_bytes(dat)
    return path
