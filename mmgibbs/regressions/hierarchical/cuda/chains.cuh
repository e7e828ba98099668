// What the kernels of a hierarchical model share: its data and its chains.
//
// Before this text stand the draws, `typedef ... VALUE` (the type of the predictors as stored) and the constants of the
// Python sources (device_source.py).
namespace mmgibbs {

struct Groups {
    const VALUE *columns;       // (n D): group i is columns[D ptr[i] : D ptr[i + 1]] read as (D, n_i)
    const long long *ptr;       // (G + 1)
    const double *centre;       // (D)
    const double *factor;       // (D): x = (column - centre) * factor
    const double *trials;       // (n); null where each is 1
    const double *cross;        // (G, d): sum of x y
    const double *reach;        // (G, D): max |x|
    const double *fifth;        // (G, D): sum of t |x|^5
    const double *information;  // (G, d)
    double *scratch;            // (blocks, scratch_values)
    unsigned long long scratch_values;
    double width;               // first bracket of a slice, in standard deviations
    word32 n_groups;
    word32 longest;             // observations of a group
    int n_columns;              // D, the intercept last
    int n_classes;              // M, those with coefficients
    int most_steps;
};

struct Hyperprior {
    const double *Z;            // (G, q)
    const double *W;            // (q, G): (Z U)'
    const double *U;            // (q, q)
    const double *eigenvalues;  // (q)
    double nu;                  // degrees of freedom of V given everything
    double scale;               // of its prior, times the identity
    double ridge;               // precision of Delta
    int q;                      // group predictors and a 1
};

// State of C chains; d coefficients in a group.
struct Chains {
    double *beta;        // (C, G, d)
    double *population;  // (C, q, d)
    double *covariance;  // (C, d, d)
    double *Q;           // (C, d, d): its inverse
    double *rows;        // (C, q, d): U' population
    double *away;        // (C, G, d)
    double *work;        // (C, q + 1, 3, d + 1, d) where d is too large for shared memory; else null
    word32 *sweep;       // (C): number of the sweep that is next
    const word32 *chain; // (C): second word of the key of each chain
    unsigned long long covariance_place;  // in a slot of the ring; the population is first
    unsigned long long beta_place;        // the same; 0 where beta is not kept
    word32 seed;
    int d;
};

}  // namespace mmgibbs
