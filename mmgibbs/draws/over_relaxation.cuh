// Numbers of over-relaxed draws: the twin of over_relaxation.py.
#pragma once

namespace mmgibbs {

constexpr double OVER_RELAXED = -0.7, NOISE = 0.714142842854285;

}  // namespace mmgibbs
