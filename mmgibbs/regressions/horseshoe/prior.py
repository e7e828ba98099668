"""The horseshoe's scales given the coefficients (Carvalho et al. 2010; Makalic & Schmidt 2016), and with a slab
(Piironen & Vehtari 2017).

    beta_j ~ N(0, 1/d_j),    d_j = tau^-2 lambda_j^-2 (+ c^-2)
    lambda_j ~ C+(0, 1),     tau ~ C+(0, t),     c^-2 ~ Gamma(k/2, rate k s^2/2)

with lambda_j^2 | nu_j ~ IG(1/2, 1/nu_j), nu_j ~ IG(1/2, 1), tau^2 | xi ~ IG(1/2, 1/xi), xi ~ IG(1/2, 1/t^2). The state
holds

    local = lambda^-2 (C, p),    local_auxiliary = 1/nu (C, p)
    global = tau^-2 (C,),        global_auxiliary = 1/xi (C,),    slab = c^-2 (C,)
"""

from __future__ import annotations

import numpy as np

from mmgibbs.draws.purpose import (
    REGRESSION_GLOBAL_AUXILIARY,
    REGRESSION_GLOBAL_SCALE,
    REGRESSION_HYPER,
    REGRESSION_LOCAL_AUXILIARY,
    REGRESSION_LOCAL_SCALE,
    REGRESSION_START,
    stream,
)
from mmgibbs.draws.shrinkage import horseshoe_auxiliary_rate, horseshoe_rate
from mmgibbs.regressions.arrays.base import Arrays
from mmgibbs.regressions.horseshoe.slice import slice_step
from mmgibbs.regressions.protocol import Array, Keys, State

LARGEST_PRECISION = 1e280
LOG_WIDTH = 6.0  # bracket of the slice steps for log tau^-2 and log c^-2


class Horseshoe:
    """Horseshoe prior without a slab: c^-2 = 0.

    lambda_j^-2 ~ Exp(rate 1/nu_j + tau^-2 beta_j^2 / 2),                     1/nu_j ~ Exp(rate 1 + lambda_j^-2)
    tau^-2 ~ Gamma((p + 1)/2, rate 1/xi + sum_j lambda_j^-2 beta_j^2 / 2),    1/xi ~ Exp(rate 1/t^2 + tau^-2)
    """

    def __init__(self, p: int, global_scale: float, arrays: Arrays):
        self.p, self.global_scale, self.arrays = p, global_scale, arrays

    def start(self, keys: Keys) -> State:
        xp, ones = self.arrays.xp, self.arrays.xp.ones(len(keys))
        return {
            "local": 2.0 * self.arrays.exponentials(keys, 0, stream(REGRESSION_START, 1), self.p),
            "local_auxiliary": xp.ones((len(keys), self.p)),
            "global": ones * self.global_scale**-2,
            "global_auxiliary": ones * self.global_scale**2,
            "slab": 0.0 * ones,
        }

    def precision(self, state: State) -> Array:
        """(C, p): d."""
        d = state["global"][:, None] * state["local"] + state["slab"][:, None]
        return self.arrays.xp.minimum(d, LARGEST_PRECISION)

    def draw(self, beta: Array, state: State, keys: Keys, sweep: int) -> State:
        """Draw all scales given beta (C, p)."""
        a, square = self.arrays, beta**2
        rate = horseshoe_rate(state["local_auxiliary"], 0.5 * state["global"][:, None] * square)
        local = self.draw_local(rate, state, keys, sweep)
        drawn = a.exponentials(keys, sweep, stream(REGRESSION_LOCAL_AUXILIARY, 0), self.p)
        local_auxiliary = drawn / horseshoe_auxiliary_rate(1.0, local)
        rate = horseshoe_rate(state["global_auxiliary"], 0.5 * (local * square).sum(1))
        overall = self.draw_global(rate, local, state, keys, sweep)
        drawn = a.exponentials(keys, sweep, stream(REGRESSION_GLOBAL_AUXILIARY, 0), 1)[:, 0]
        global_auxiliary = drawn / horseshoe_auxiliary_rate(self.global_scale**-2, overall)
        slab = self.draw_slab(square, local, overall, state, keys, sweep)
        return {
            "local": local,
            "local_auxiliary": local_auxiliary,
            "global": overall,
            "global_auxiliary": global_auxiliary,
            "slab": slab,
        }

    def draw_local(self, rate: Array, state: State, keys: Keys, sweep: int) -> Array:
        return self.arrays.exponentials(keys, sweep, stream(REGRESSION_LOCAL_SCALE, 0), self.p) / rate

    def draw_global(self, rate: Array, local: Array, state: State, keys: Keys, sweep: int) -> Array:
        shape = self.arrays.xp.full((len(keys), 1), 0.5 * (self.p + 1))
        return self.arrays.gammas(keys, sweep, stream(REGRESSION_GLOBAL_SCALE, 0), shape)[:, 0] / rate

    def draw_slab(self, square: Array, local: Array, overall: Array, state: State, keys: Keys, sweep: int) -> Array:
        return state["slab"]


class RegularisedHorseshoe(Horseshoe):
    """Horseshoe prior with a slab.

    Its density is N(beta_j; 0, 1/d_j) whole, so sum_j log(d_j)/2 stands where (p/2) log tau^-2 and log lambda_j^-1 did.
    """

    def __init__(self, p: int, global_scale: float, slab_scale: float, slab_df: float, arrays: Arrays):
        super().__init__(p, global_scale, arrays)
        self.slab_scale, self.slab_df = slab_scale, slab_df

    def start(self, keys: Keys) -> State:
        return super().start(keys) | {"slab": self.arrays.xp.full(len(keys), self.slab_scale**-2)}

    def draw_local(self, rate: Array, state: State, keys: Keys, sweep: int) -> Array:
        """lambda^-2 = h of the density h^-1/2 (h + k)^1/2 exp(-rate h), k = c^-2 tau^2, by an independence step.

        For (h + k)^1/2 <= h^1/2 + k^1/2 the proposal is Exp(rate) or, with odds (pi k rate)^1/2, Gamma(1/2, rate); the
        ratio of the two sides is between 0.707 and 1, so that at least that share is accepted.
        """
        a, xp, old = self.arrays, self.arrays.xp, state["local"]
        k = (state["slab"] / state["global"])[:, None]
        u = a.uniforms(keys, sweep, stream(REGRESSION_LOCAL_SCALE, 1), self.p, 2)
        odds = xp.sqrt(np.pi * k * rate)
        exponential = a.exponentials(keys, sweep, stream(REGRESSION_LOCAL_SCALE, 0), self.p)
        half = 0.5 * a.normals(keys, sweep, stream(REGRESSION_LOCAL_SCALE, 2), self.p) ** 2  # Gamma(1/2)
        new = xp.where(u[..., 0] * (1.0 + odds) < odds, half, exponential) / rate
        ratio = lambda h: xp.sqrt(h + k) / (xp.sqrt(h) + xp.sqrt(k))
        return xp.where(u[..., 1] * ratio(old) < ratio(new), new, old)

    def draw_global(self, rate: Array, local: Array, state: State, keys: Keys, sweep: int) -> Array:
        """A slice step for log tau^-2, of log density x/2 - rate e^x + sum_j log(d_j)/2."""
        xp, old, slab = self.arrays.xp, state["global"], state["slab"]

        def density(x: Array, c: np.ndarray) -> Array:
            new = old[c] * xp.exp(x)
            return 0.5 * x - new * rate[c] + 0.5 * xp.log(new[:, None] * local[c] + slab[c, None]).sum(1)

        return old * xp.exp(
            slice_step(density, LOG_WIDTH, keys, sweep, stream(REGRESSION_GLOBAL_SCALE, 0), self.arrays)[0]
        )

    def draw_slab(self, square: Array, local: Array, overall: Array, state: State, keys: Keys, sweep: int) -> Array:
        """A slice step for log c^-2, of log density k x/2 - (k s^2 + sum beta^2) e^x / 2 + sum_j log(d_j)/2."""
        xp, old, df = self.arrays.xp, state["slab"], self.slab_df
        rate = 0.5 * (df * self.slab_scale**2 + square.sum(1))

        def density(x: Array, c: np.ndarray) -> Array:
            new = old[c] * xp.exp(x)
            return 0.5 * df * x - new * rate[c] + 0.5 * xp.log(overall[c, None] * local[c] + new[:, None]).sum(1)

        return old * xp.exp(slice_step(density, LOG_WIDTH, keys, sweep, stream(REGRESSION_HYPER, 0), self.arrays)[0])
