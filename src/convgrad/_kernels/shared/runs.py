"""How long sums of products run in registers before they go to totals: one rule for every family, for equal errors.

A plain sum of n products errs by about 0.29 sqrt(n) u, in runs of r that are added to totals by 0.29 sqrt(r + n / r).
"""

from __future__ import annotations

RUN = 48
"""Most products added up in registers before they go to the totals: 3 to 4% slower than without; of 64 2.5%, 2.6 u."""
ENOUGH = 32
"""Products after which runs of several taps go to the totals."""
SHORT = 160
"""Sums of so few products go without totals: first layers, groups of 16 and narrow pointwise layers, at most 3.6 u."""
