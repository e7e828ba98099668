// Where a kept draw goes: slots of a ring, which machine/ring.py empties.
#pragma once
#include "elementary.cuh"

namespace mmgibbs {

struct Ring {
    double *slots;                   // (n_slots, slot_values)
    unsigned long long slot_values;  // of a draw of all chains
    word32 n_slots;
    word32 burn_in;
    word32 thin;
};

// The slot of this sweep's draw; null where it is not kept.
__device__ __forceinline__ double *find_slot(const Ring &ring, word32 sweep) {
    if (sweep <= ring.burn_in || (sweep - ring.burn_in) % ring.thin) return 0;
    return ring.slots + ((sweep - ring.burn_in) / ring.thin - 1) % ring.n_slots * ring.slot_values;
}

}  // namespace mmgibbs
