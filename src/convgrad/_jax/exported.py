"""`register`: what another process has exported finds our programs here."""

from __future__ import annotations

import re
from typing import Any

from .._errors import ArgumentTypeError, shown
from . import targets

_CALL = re.compile(rf'@({targets.PREFIX}[0-9a-f]+)\(.*?problem = "([^"]*)", switches = "([^"]*)"')


def register(exported: Any) -> int:
    """Prepare the programs that a `jax.export.Exported` calls; returns how many it calls.

    A function that was exported with our convolutions in it calls programs by name. The process that exported it has
    registered them, another one has not: there XLA would refuse to compile the module, naming the first. Each call has
    its problem beside it, so that programs for this machine can be made from the module itself.
    """
    module = getattr(exported, "mlir_module", None)
    if not callable(module):
        raise ArgumentTypeError(
            f"register: `exported` must be a jax.export.Exported, got {shown(exported)}."
        )
    found = set(_CALL.findall(module()))
    for name, text, switches in sorted(found):
        targets.register_text(name, text, switches)
    return len(found)
