"""Kernel symbols: names that say what the kernel is.

The same string is the symbol in the object, the name in profiles and the name of an exported
function.
"""

from __future__ import annotations

import hashlib
import re

from convgrad._compiler.kernel import spelled
from convgrad._compiler.targets import Target


def symbol(op: str, dtype: str, tile: str, target: Target, identity: object = ()) -> str:
    """Spell `cg_<op>_<dtype>_<tile>_<target>_<hash>`; the hash is of `identity`'s repr.

    >>> from convgrad._compiler.targets import find
    >>> symbol("depthwise_bwd_filter", "f32", "r2t4", find("avx2"), (3, 3))
    'cg_depthwise_bwd_filter_f32_r2t4_avx2v256_a6599b95'
    """
    digest = hashlib.blake2b(spelled(identity).encode(), digest_size=4).hexdigest()
    name = f"cg_{op}_{dtype}_{tile}_{target.label}_{digest}"
    assert re.fullmatch(r"\w+", name, re.ASCII), name
    return name
