"""What the tests of files made to hurt share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convgrad._apps.pages.files import read_page
from convgrad._base.errors import ArgumentError

PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
USE = '<use id="A" type="tensorflow" xlink:href="#Const">{}</use>'
BINARY = '<pg-set-pin variable="#val" var-type="{}" shape="{}" save-type="binary" binary-pos="{}"/>'


@contextmanager
def soon() -> Iterator[None]:
    """Fail if a block takes long: the slowest takes under two seconds; a quadratic search took 24."""
    begin = time.process_time()  # of this process, as others use the machine too
    yield
    assert time.process_time() - begin < 4


def put(folder: Path, content: str | bytes, name: str = "page.svg") -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-16") if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    """Return the one line a file is refused with."""
    with soon(), pytest.raises(ArgumentError) as caught:
        read_page(path)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    assert path.name in text or repr(str(path))[1:-1] in text
    return text


def page_of(inside: str) -> str:
    return f'<svg enuspace-version="3.0.1">{inside}</svg>'
