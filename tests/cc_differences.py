"""Messages of the C++ API that are not TensorFlow's, by the label of their case, and why."""

from __future__ import annotations

REASONS = {
    "ends": "TensorFlow ends the process",
    "computes": "convgrad computes what TensorFlow refuses",
    "earlier": "convgrad finds the mistake while the graph is built, TensorFlow while it runs",
    "refuses": "TensorFlow takes what cannot be meant",
    "words": "the same mistake in other words: TensorFlow's are about its own parts",
}

DIFFERENCES: dict[str, tuple[str, str]] = {}
