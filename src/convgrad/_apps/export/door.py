"""`convgrad.export`: checks what was asked for, makes the pack, writes its folder."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..._base.errors import ArgumentError, ArgumentTypeError, nearest, shown
from ..._base.fp_mode import default_mode
from ..._compiler import jit, targets
from ..._compiler.targets import System, Target
from . import archive, c_source, folder, listing, names, packaging, self_test
from . import pack as packs
from .listing import Report
from .pack import Advance, Pack
from .problems import Reader, chosen

HOST = "host"
_INCLUDE = Path(__file__).parents[2] / "include"
_LARGEST_CACHE = 1 << 40


def export(
    problems: Any,
    out: str | os.PathLike[str],
    *,
    name: str,
    target: str | None = None,
    system: str | None = None,
    l1: int | None = None,
    l2: int | None = None,
    l3: int | None = None,
    batch: int | None = None,
    dtype: str | None = None,
    data_format: str | None = None,
    ops: Sequence[str] | None = None,
    with_test: bool = True,
    skip_refused: bool = False,
    force: bool = False,
    progress: Advance | None = None,
) -> Report:
    """Write kernels for a list of problems as a static library with C around it: a pack.

    The folder then holds ``libNAME.a``, ``NAME.c``, ``NAME.h`` and ``convgrad_pack.h``, which need neither Python nor
    this library; a self-test, ``NAME_test.c``; files for CMake and pkg-config; and ``NAME.txt``, the list of problems.
    Equal calls write equal bytes, whatever the order of the problems.

    Parameters
    ----------
    problems : text, path, graph, or a list of these
        Lines such as ``"conv2d 1x28x28x64 3x3x64x64 strides=2"``, layers (``"8x56x56x144k3s2"`` stands for its three
        operations), networks (``"mobilenet_v2"``), files of lines such as a recording, page files, pages and graphs;
        ``"@FILE"`` is always a file.
        ``bias=output`` behind a line adds a bias; ``"batch_norm_act.forward ..."`` is batch norm with an activation,
        and ``"conv2d ... | batch_norm_act.forward relu ..."`` both in one function; docs/packs.md has the grammar.
    out : path
        The folder; it is made if it is not there.
    name : str
        A C identifier, the beginning of all names in the pack.
    target : str
        A row: avx512, avx2, sse2, neon, wasm, wasm_simd, cortex_m4, cortex_m7, riscv64, riscv64v; the row of this
        machine if it is not given. ``"host"`` is that row with this machine's own cache sizes: results are then the
        bits that this library computes here.
    system : str
        linux, windows, macos and others, or none for bare machines; by default the target's first.
    l1, l2, l3 : int
        Bytes of cache that plans are made for; by default the row's.
    batch, dtype, data_format
        For networks and layers, which do not say them. `batch` is also the first size of placeholders of a graph
        where that is unknown.
    ops : list of "fwd", "dx", "dw"
        Keep only these operations.
    with_test : bool
        Whether to write the self-test. Its expected numbers take about as long to compute as to compile the kernels.
    skip_refused : bool
        Leave out and list problems no kernel takes, instead of raising.
    force : bool
        Replace files that are there.
    progress : callable
        Called with how many of about ``3 * len(problems)`` steps were done since, and a text.

    Returns
    -------
    Report
        Sizes of everything; print it, or use `to_dict()`.

    Examples
    --------
    >>> import convgrad, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = convgrad.export("conv2d 1x8x8x4 3x3x4x8", folder, name="tiny", target="avx2")
    >>> report.files
    ('convgrad_pack.h', 'libtiny.a', 'tiny.c', 'tiny.h', 'tiny.pc', 'tiny.txt', 'tinyConfig.cmake', \
'tinyConfigVersion.cmake', 'tiny_test.c')
    """
    started = time.perf_counter()
    names.checked_name(name)
    row, where = chosen_target(target, system, l1, l2, l3)
    if batch is not None and (type(batch) is not int or batch < 1):
        raise ArgumentError(
            f"export: `batch` must be a whole number of at least 1, got {shown(batch)}."
        )
    for word, text in (("dtype", dtype), ("data_format", data_format)):
        if text is not None and (not isinstance(text, str) or len(text.split()) != 1):
            raise ArgumentTypeError(f"export: `{word}` must be one word, got {shown(text)}.")
    if progress is not None and not callable(progress):
        raise ArgumentTypeError(
            f"export: `progress` must be a function or None, got {shown(progress)}."
        )
    where_to = folder.named(out)
    reader = Reader(batch, dtype, data_format)
    reader.read(problems)
    reader.check_settings()
    wanted = chosen(reader.problems, ops)
    if not wanted:
        raise ArgumentError(f"export: `problems` must hold at least one, got {shown(problems)}.")
    place = folder.check(where_to, file_names(name, with_test), force=force)
    advance = progress or (lambda done, text: None)
    with default_mode():
        made = packs.make_pack(name, wanted, row, where, skip_refused=skip_refused, advance=advance)
    if not made.entries:
        reasons = "; ".join(f"{each.line}: {each.reason}" for each in made.refused)
        raise ArgumentError(f"export: `problems`: none of them is left: {shown(reasons)}.")
    with default_mode():
        files = contents(made, with_test, advance)
    folder.check(where_to, files, force=force)
    folder.write(place, files)
    seconds = time.perf_counter() - started
    return Report(made, str(where_to), tuple(sorted(files)), tuple(reader.notes), seconds)


def file_names(name: str, with_test: bool) -> list[str]:
    """Return the files that only this pack has."""
    found = [f"lib{name}.a", *(f"{name}{end}" for end in (".c", ".h", ".txt", ".pc"))]
    found += [f"{name}Config.cmake", f"{name}ConfigVersion.cmake"]
    return [*found, f"{name}_test.c"] if with_test else found


def contents(
    pack: Pack, with_test: bool, advance: Advance = lambda done, text: None
) -> dict[str, bytes]:
    """Return the pack's files by name."""
    library = archive.archive(
        [(code.symbol, code.object) for code in pack.codes], pack.system.archive_style
    )
    texts = {
        f"{pack.name}.c": c_source.source(pack),
        f"{pack.name}.h": c_source.header(pack),
        f"{pack.name}.txt": listing.text_file(pack, c_source.facts(pack)),
        **packaging.files(pack),
    }
    if with_test:
        known = []
        for entry in pack.entries:
            advance(1, f"computing {entry.line}")
            known.append(self_test.known(entry))
        texts[f"{pack.name}_test.c"] = self_test.source(pack, known)
    fixed = (_INCLUDE / c_source.FIXED).read_bytes()
    return {
        c_source.FIXED: fixed,
        f"lib{pack.name}.a": library,
        **{name: text.encode() for name, text in sorted(texts.items())},
    }


def chosen_target(
    name: str | None, system: str | None, l1: int | None, l2: int | None, l3: int | None
) -> tuple[Target, System]:
    """Return the row kernels are compiled for, with the caches they are planned for, and the system."""
    if name == HOST:
        row = jit.host_target()
    elif name is None:
        row = targets.find(jit.host_target().name)
    else:
        rows = [each.name for each in targets.ALL]
        if not isinstance(name, str) or name not in rows:
            hint = nearest(name, rows) if isinstance(name, str) else ""
            raise ArgumentError(
                f"export: `target` must be {HOST} or one of {', '.join(rows)}, got {shown(name)}{hint or '.'}"
            )
        row = targets.find(name)
    for level, size in (("l1", l1), ("l2", l2), ("l3", l3)):
        if size is not None and (type(size) is not int or not 1 << 10 <= size <= _LARGEST_CACHE):
            raise ArgumentError(
                f"export: `{level}` must be bytes of a cache, from 1,024 to 2**40, got {shown(size)}."
            )
    row = row.with_caches(l1, l2, l3)
    systems = [each.name for each in row.systems]
    if system is not None and system not in systems:
        raise ArgumentError(
            f"export: `system` must be one of {', '.join(systems)} for {row.name}, got {shown(system)}."
        )
    return row, row.system_called(system)
