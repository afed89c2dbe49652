"""Write the digests that `convgrad check bits` expects: of convolutions as the contract's specification gives them.

Usage: python -m tools.expected_bits [--check]      run after a change of the contract of sums, which is a new VERSION

With --check nothing is written: status 1 if the file is another one. No kernel of a convolution is asked, so what
`check bits` compares are two programs. Batch norm has no specification: its digests are those of this machine's
kernels, which must have a fused multiply-add. Takes ten seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from convgrad._apps.bits import campaign, expected
from convgrad._compiler import jit

FILE = Path(expected.__file__)


def text() -> str:
    """Return the module's text."""
    rows = "".join(
        f'    "{each.name}": "{each.digest}",\n' for each in campaign.receipts(campaign.specified)
    )
    head = FILE.read_text(encoding="utf-8").split("EXPECTED")[0]
    return f"{head}EXPECTED: dict[str, str] = {{\n{rows}}}\n"


def main() -> int:
    """Write, or compare."""
    if not jit.host_target().has_fma:
        print("this machine has no fused multiply-add: its bits are not those of the contract")
        return 2
    made = text()
    same = made == FILE.read_text(encoding="utf-8")
    if "--check" not in sys.argv[1:] and not same:
        FILE.write_text(made, encoding="utf-8")
    print(f"{FILE.name} is {'as it was' if same else 'another one now'}")
    return 1 if "--check" in sys.argv[1:] and not same else 0


if __name__ == "__main__":
    sys.exit(main())
