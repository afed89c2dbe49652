"""`register`: what another process has exported finds our programs here."""

from __future__ import annotations

import re
from typing import Any

from ..._base.errors import ArgumentTypeError, shown
from . import targets

_CALL = re.compile(rf'@({targets.PREFIX}[0-9a-f]+)\(.*?problem = "([^"]*)", switches = "([^"]*)"')


_MOST_ORDERS = 3
"""Derivatives that are looked for: a function that was exported here, not read back, has one of every order."""


def register(exported: Any) -> int:
    """Prepare the programs that a `jax.export.Exported` calls; returns how many it calls, with its derivatives.

    A function that was exported with our convolutions in it calls programs by name. The process that exported it has
    registered them, another one has not: there XLA says ``NOT_FOUND: No FFI handler registered for convgrad_...``. Each
    call has its problem beside it, so that programs for this machine can be made from the module itself.
    """
    found: set[tuple[str, str, str]] = set()
    for _ in range(1 + _MOST_ORDERS):
        if not callable(getattr(exported, "mlir_module", None)):
            raise ArgumentTypeError(
                f"register: `exported` must be a jax.export.Exported, got {shown(exported)}."
            )
        found |= set(_CALL.findall(exported.mlir_module()))
        if not exported.has_vjp():
            break
        exported = exported.vjp()
    for name, text, switches in sorted(found):
        targets.register_text(name, text, switches)
    return len(found)
