"""Names of kernels in packs: `cgk_` and 16 hexadecimal digits that say which code it is.

Packs of different versions may be linked into one program. Their kernels have one name exactly where they are one
function: the digits are a hash of the text, without its own name, and of what it is compiled for.
"""

from __future__ import annotations

import hashlib
import re

from ..kernel import KernelSource
from ..targets import Target


def in_pack(source: KernelSource, target: Target, triple: str) -> KernelSource:
    """Return a kernel under its name in packs.

    >>> from convgrad._compiler.targets import find
    >>> source = KernelSource("cg_kernel", "define void @cg_kernel() { ret void }", 64)
    >>> in_pack(source, find("avx2"), find("avx2").triple)
    KernelSource(symbol='cgk_3c2ce875b098e835', ir='define void @cgk_3c2ce875b098e835() { ret void }', scratch_bytes=64)
    """
    # The function with its items is named after it (`codegen.fp_mode`).
    own_name = re.compile(rf"@{re.escape(source.symbol)}(?=\.items\(|(?![\w.$-]))")
    neutral = own_name.sub("@kernel", source.ir)
    told = f"{target.name} {target.cpu} {target.features}\n{triple}\n{neutral}"
    symbol = f"cgk_{hashlib.blake2b(told.encode(), digest_size=8).hexdigest()}"
    return KernelSource(symbol, own_name.sub(f"@{symbol}", source.ir), source.scratch_bytes)
