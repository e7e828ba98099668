// Work in rounds: each needs all that the one before wrote, in whatever block. A work is a structure with `rounds()` and
// `round(r)`, which all blocks call; blocks share a round out by blockIdx and gridDim.
//
// Each round is a node of a graph (one_round), or all of them are one cooperative launch with a barrier of all blocks
// between (all_rounds). A host runs the blocks of a round one after another: it redefines BLOCKS and BARRIER_OF_BLOCKS.
#pragma once
#include "phases.cuh"

#ifndef BLOCKS
#define BLOCKS
#define BARRIER_OF_BLOCKS(arrived, target) wait_for_blocks(arrived, target);
#endif

namespace mmgibbs {

#ifdef __CUDACC__
// Wait until `target` arrivals: of all blocks of a launch, in this round and those before. arrived: 0 at the launch.
__device__ inline void wait_for_blocks(unsigned *arrived, unsigned target) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1U);
        while (*(volatile unsigned *)arrived < target) {
        }
        __threadfence();
    }
    __syncthreads();
}
#endif

template <class Work>
__global__ void __launch_bounds__(Work::THREADS) one_round(Work work, int r) {
    work.round(r);
}

template <class Work>
__global__ void __launch_bounds__(Work::THREADS) all_rounds(Work work, unsigned *arrived) {
    for (int r = 0; r < work.rounds(); ++r) {
        BLOCKS { work.round(r); }
        BARRIER_OF_BLOCKS(arrived, (unsigned)(r + 1) * gridDim.x)
    }
}

}  // namespace mmgibbs
