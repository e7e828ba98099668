// Kernels in PHASEs, which the threads of a block pass one after another with a BARRIER between.
//
// Nothing but shared and global memory is kept from one phase to the next, and what stands outside of phases is the same
// for all threads of a block. So a host can run a block as loops over its threads: it redefines the two words.
#pragma once

#ifndef PHASE
#define PHASE
#define BARRIER __syncthreads();
#endif
