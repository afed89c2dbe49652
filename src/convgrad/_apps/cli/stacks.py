"""A stack: one array that lies in many .npy files, an image or a batch in each.

Only headers are read here. All files must agree before anything is computed, and the first one that does not is named.
What an array is cut into is described by plain records (`parts`), which tasks on other machines can read.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..._base.dtypes import AnyArray, DType
from . import parts, sources
from .parts import Chunks, FileArray, Part, Region
from .verb import Refusal

_MAGIC = re.compile(r"[*?\[]")
_ARCHIVE = re.compile(r"\.npz(:|$)", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Stack:
    """Files one behind the other, along the batch."""

    name: str
    """As it was written."""
    files: tuple[FileArray, ...]
    dtype: DType

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where in the batch each file begins, and where the last one ends."""
        found = [0]
        for file in self.files:
            found.append(found[-1] + file.shape[0])
        return tuple(found)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.starts[-1], *self.files[0].shape[1:])

    def images(self, begin: int, end: int) -> AnyArray:
        whole = tuple((0, size) for size in self.shape[1:])
        return self.part(((begin, end), *whole)).read()

    def readable(self, wanted: Chunks) -> Chunks:
        """Any part can be read by itself."""
        return wanted

    def part(self, region: Region) -> Part:
        return parts.FileParts(tuple(self._pieces(region)))

    def _pieces(self, region: Region) -> Iterator[parts.FilePart]:
        (begin, end), *rest = region
        if begin == end:
            yield parts.FilePart(self.files[0], ((0, 0), *rest))
        for at in range(parts.place(self.starts, begin), len(self.files)):
            start, stop = max(begin, self.starts[at]), min(end, self.starts[at + 1])
            if self.starts[at] >= end:
                return
            if start < stop:
                inside = (start - self.starts[at], stop - self.starts[at])
                yield parts.FilePart(self.files[at], (inside, *rest))

    @property
    def paths(self) -> tuple[str, ...]:
        """What a worker must see: the first and the last of the files."""
        return tuple(dict.fromkeys((self.files[0].path, self.files[-1].path)))


def is_stack(text: str) -> bool:
    """Tell whether a word stands for a stack: a pattern, or a folder that is not called like a file.

    >>> is_stack("frames/*.npy"), is_stack("x.npy"), is_stack("x[1].npz:a")
    (True, False, False)
    """
    path = Path(text)
    if path.exists():
        return path.is_dir() and path.suffix.lower() not in (".npy", ".npz")
    return _MAGIC.search(text) is not None and _ARCHIVE.search(text) is None


def read(text: str, said: DType | None) -> Stack:
    """Find the files of a pattern or a folder, and compare what their headers say."""
    paths = _found(text)
    files: list[FileArray] = []
    row = None
    for path in paths:
        file, found = sources.described(path, said)
        if len(file.shape) not in (3, 4):
            raise Refusal(
                f"{path} has the shape {list(file.shape)}; "
                "a file of a stack is an image of 3 dimensions or a batch of 4"
            )
        if files:
            _compare(paths[0], files[0], row, path, file, found)
        files.append(file)
        row = found
    assert row is not None
    return Stack(text, tuple(_as_batch(file) for file in files), row)


def _found(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        found = [each for each in path.iterdir() if each.suffix.lower() == ".npy"]
        found = [each for each in found if not each.name.startswith(".")]
        if not found:
            raise Refusal(f"the folder {text} holds no .npy files")
    else:
        found = [Path(each) for each in glob.glob(text, recursive=True)]  # noqa: PTH207  # as the shell reads it
        if not found:
            raise Refusal(f"no file is called like {text!r}")
    other = next((each for each in found if each.suffix.lower() != ".npy"), None)
    if other is not None:
        raise Refusal(f"{text!r} finds {other}; a stack is made of .npy files")
    return sorted(found, key=natural)


def natural(path: Path) -> list[Any]:
    """Order names as people count: frame2 comes before frame10.

    >>> [p.name for p in sorted(map(Path, ["f10.npy", "f2.npy", "f1.npy"]), key=natural)]
    ['f1.npy', 'f2.npy', 'f10.npy']
    """
    words = _NUMBERS.split(str(path))
    # Texts and numbers take turns, so a text is never compared with a number. Equal numbers (1, 01): the text decides.
    return [*(int(word) if at % 2 else word for at, word in enumerate(words)), "", str(path)]


def _compare(
    first_path: Path,
    first: FileArray,
    first_row: DType | None,
    path: Path,
    file: FileArray,
    row: DType,
) -> None:
    assert first_row is not None
    if row is not first_row:
        raise Refusal(f"{path} holds {row.name}, {first_path} {first_row.name}: a stack has one")
    batched = len(first.shape) == 4
    if len(file.shape) != len(first.shape) or file.shape[batched:] != first.shape[batched:]:
        what = "images of one shape" if batched else "one shape"
        raise Refusal(
            f"{path} has the shape {list(file.shape)}, {first_path} {list(first.shape)}: a stack has {what}"
        )


def _as_batch(file: FileArray) -> FileArray:
    """An image is a batch of one, byte for byte in either order of storage."""
    return file if len(file.shape) == 4 else file.with_shape((1, *file.shape))
