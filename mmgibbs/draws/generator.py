"""A generator of NumPy for a step that draws from distributions without a kernel, keyed as the kernels' draws are.

NumPy's Philox4x64-10, too, is a bijection of counters for each key, here (seed, chain): its counter begins at
(0, sweep, level, stream), of which it counts the first word. Two generators that differ in one of the others never
draw the same block. Which numbers a distribution makes of the blocks is NumPy's own, and may change with its version.
"""

from __future__ import annotations

import numpy as np


def make_generator(number: int, level: int, stream: int, key: tuple[int, int]) -> np.random.Generator:
    """Make the generator of (sweep, level, stream; seed, chain), which one step alone may ask for."""
    return np.random.Generator(np.random.Philox(counter=[0, number, level, stream], key=list(key)))
