"""The page being written: lines of IR, fresh names, blocks, declarations.

Kernels are text from the start. Depthwise kernels built as `llvmlite.ir` objects and then printed
took 19-58 ms; as text, kernels of 450-1360 lines take 1-3 ms, and nothing here imports llvmlite.
The price is that mistakes show when LLVM parses the text. This module knows no types and no
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convgrad._compiler.targets import Target

from .fp_mode import framed


class Emitter:
    """Collects the text of one function."""

    __slots__ = ("_declared", "_last", "block", "body", "ended", "prologue", "scopes", "target")

    def __init__(self, target: Target) -> None:
        self.target = target
        self.prologue: list[str] = []
        """Lines at the very top of the function: what they define is visible everywhere."""
        self.body: list[str] = []
        self.block = "entry"
        """Label of the block being written."""
        self.ended = False
        """Whether the block being written has returned: nothing may follow in it."""
        self.scopes: list[dict[Any, Any]] = []
        """One per open arm or loop: the variables set in it, with their values before it."""
        self._declared: dict[str, str] = {}
        self._last = 0

    def name(self) -> str:
        self._last += 1
        return f"%v{self._last}"

    def label(self) -> str:
        self._last += 1
        return f"b{self._last}"

    def value(self, instruction: str) -> str:
        """Write an instruction that has a result; return the result's name."""
        self._last += 1
        name = f"%v{self._last}"
        self.body.append(f"  {name} = {instruction}")
        return name

    def line(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.body.append(f"  {instruction}")

    def once(self, instruction: str) -> str:
        """Write an instruction with a result at the top of the function."""
        name = self.name()
        self.prologue.append(f"  {name} = {instruction}")
        return name

    def call(self, function: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic that has a result; `arguments` are (type, text) pairs."""
        self.declare(function, result, [kind for kind, _ in arguments])
        given = ", ".join([f"{kind} {text}" for kind, text in arguments])
        return self.value(f"call {result} @{function}({given})")

    def call_void(self, function: str, arguments: Sequence[tuple[str, str]]) -> None:
        """Call an intrinsic without a result."""
        self.declare(function, "void", [kind for kind, _ in arguments])
        given = ", ".join([f"{kind} {text}" for kind, text in arguments])
        self.line(f"call void @{function}({given})")

    def declare(self, function: str, result: str, arguments: Sequence[str]) -> None:
        if function not in self._declared:
            kinds = ", ".join(arguments)
            self._declared[function] = f"declare {result} @{function}({kinds})"

    def start(self, label: str) -> None:
        self.body.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.body.append(f"  br label %{label}")

    def fork(self, condition: str, yes: str, no: str) -> None:
        self.body.append(f"  br i1 {condition}, label %{yes}, label %{no}")

    def hole(self) -> int:
        """Leave a line for `fill`: a phi whose last operand is not known yet."""
        self.body.append("")
        return len(self.body) - 1

    def fill(self, hole: int, text: str) -> None:
        self.body[hole] = f"  {text}"

    def text(self, symbol: str) -> str:
        """Return the module."""
        begin, frame = framed(symbol, self.target.mode_register)
        return "\n".join(
            [
                *frame,
                f"{begin}(ptr noalias %args, i64 %begin, i64 %end, ptr noalias %scratch) #0 {{",
                "entry:",
                *self.prologue,
                *self.body,
                "  ret void",
                "}",
                *self._declared.values(),
                "attributes #0 = { nounwind }",
                "!0 = !{}",
                "",
            ]
        )
