"""What a user can do where no batch norm of a model was fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..report import Fused

_SEQUENCE = (
    "Put convolution, batch norm and activation into a torch.nn.Sequential: it is fused by itself, whatever the "
    "forward around it does."
)
_CLASS = (
    "Only torch.nn.BatchNorm2d itself is fused. Where {kind} stands for a batch norm and its activation, write "
    "torch.nn.BatchNorm2d and the activation's own layer."
)
_REMEDIES = (
    (" is left to PyTorch", ""),
    ("it has hooks", "Remove the hooks of these layers, and call accelerate again."),
    ("it is used in several places", "Give each place in the model a layer of its own."),
    (
        "was replaced",
        "Undo what replaced the forward (delattr(module, 'forward')), and call accelerate again.",
    ),
    ("in ", _SEQUENCE),
    ("no forward that was traced", _SEQUENCE),
)
"""Words of a reason, and what helps; the first that fits counts."""


def remedies(blocks: Sequence[Fused]) -> tuple[str, ...]:
    """Return what would let batch norms be fused, most frequent first, if there are some and none was."""
    left = [block for block in blocks if not block.taken]
    if not left or any("batch norm" in block.what for block in blocks if block.taken):
        return ()
    counted: Counter[str] = Counter()
    for block in left:
        if block.what != "BatchNorm2d":
            counted[_CLASS.format(kind=block.what)] += 1
        counted[next((then for words, then in _REMEDIES if words in block.reason), "")] += 1
    found = (said for said, _ in counted.most_common() if said)
    return ("No batch norm of this model is fused.", *found)
