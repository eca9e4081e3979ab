"""Sizes by which several kernels' host sides choose a way alike, as caches, memory and threads are.

Whole numbers in capitals, here, in geometry (but a cache line's), in launch and in each of these modules, are
thresholds that choose a way. Results are right with any smaller one, too, from 1 on, of `*_BYTES` and `*TILE` from 64
on: `stress/scale.py` draws such.
"""

from __future__ import annotations

LARGE_BYTES = 1 << 18  # input, of poolings output, too, from which a second thread pays
PART_BYTES = 1 << 18  # a part smaller than this is not worth a thread
PARTIALS = 1 << 15  # (key, index) or (top, sum) pairs of parts, half a MiB
FAR_BYTES = 1 << 24  # input that the caches hold in part, if at all
UNCACHED_BYTES = 1 << 25  # larger input is in none of them
PAST_BYTES = 1 << 24  # output from which it, or its zeros, go past them: see geometry.outgrows
BESIDE = 400  # columns that narrow rows taken as one have, at most, about
