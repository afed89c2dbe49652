"""The contract of sums: in which order the products of one result are added. A function of the problem alone.

CPU, caches, vectors, threads and prices are not asked, nor the batch of a forward pass or an input gradient. Whatever
computes a problem obeys it, so all schedules give the same bits on every CPU with a fused multiply-add. A change of a
number in this folder changes results everywhere, and takes a new `VERSION`.
"""

from __future__ import annotations

VERSION = 1
"""Of the contract; two results with one version have the same bits."""
