"""Every row of activations in layers of Keras; what computes them is a backend's, which has the same tests."""

from __future__ import annotations

from pathlib import Path

import new_row


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    """A layer that has it is recognised, fused and computed."""
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))
