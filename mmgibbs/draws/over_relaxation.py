"""Over-relaxed draws (Adler 1981): what is drawn lands on the other side of its conditional mean more often than not.

Of x | rest ~ N(m, V), given the x of before,

    x' = m + a (x - m) + sqrt(1 - a^2) V^(1/2) z,    -1 < a < 1,  z ~ N(0, I)

leaves the conditional as it is (x' has mean m and variance a^2 V + (1 - a^2) V), and so the distribution that the chain
draws from. a = 0 is a plain Gibbs draw. With a below 0 what a sweep cannot move at once, because each part is tight
given all others, moves on in one direction in place of stepping to and fro: the sweep is successive over-relaxation of
the mixed-model equations by the factor 1 - a (Fox & Parker 2017), at the cost of a plain one. What it takes is from
the squares of deviations, whose correlation a^2 is above 0: hence a value well inside of -1.

As x - m is known from what a plain draw needs anyway, x' = x + (1 - a)(m - x) + sqrt(1 - a^2) V^(1/2) z.
"""

from __future__ import annotations

from math import sqrt

# a, of location effects and of the elements that covariance matrices are drawn by. -0.7 gives two to seven times the
# effective draws of a variance that 0 gives, and more than -0.5; -0.9 little more (benchmarks/interweaving.py)
OVER_RELAXED = -0.7
TOWARDS_MEAN = 1.0 - OVER_RELAXED  # what m - x is multiplied by (over_relaxation.cuh has these as well)
NOISE = sqrt(1.0 - OVER_RELAXED**2)
