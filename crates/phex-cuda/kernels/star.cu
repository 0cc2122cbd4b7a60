// One one-of group of classes with attributes that are independent given the class, in closed form.
//
//   l(c, a) = log(exp(-off) + exp(l_a - on)),   p(c) ~ exp(l_c - own_c + sum_a l(c, a)),
//   p(x_a = 1) = sum_c p(c) exp(l_a - on - l(c, a))
//
// A block has a row. What a cell costs depends on its kind alone: where kinds are few (TABLES), l and the probability given
// the class are computed once a kind and attribute, else cell by cell. A warp has a class, its lanes the attributes; then
// a thread has an attribute and goes over the classes, so that cells are read side by side both times. Weights of classes
// are doubles: they are sums over all attributes. Cost a row: O(classes x attributes).

struct Star {
    const int *classes, *attributes;
    const double *own;
    // What an attribute costs off and on, by kind; the kind of each cell, class after class.
    const REAL *kinds;
    const u32 *kind_of;
    const double *bias;
    int class_count, attribute_count, kind_count, labels;
    double constant;
};

struct Cell {
    REAL level, given;
};

__device__ __forceinline__ float log_of(float x) { return log1pf(x); }
__device__ __forceinline__ double log_of(double x) { return log1p(x); }

// `known`: 1 on, -1 off, 0 unknown.
__device__ __forceinline__ Cell cell_of(REAL score, int known, REAL off, REAL on) {
    if (known > 0) return {score - on, REAL(1)};
    if (known < 0) return {-off, REAL(0)};
    REAL a = -off, b = score - on, high = larger(a, b), small = exponential((a > b ? b : a) - high);
    REAL share = 1 / (1 + small);
    return {high + log_of(small), a > b ? small * share : share};
}

extern "C" __global__ void __launch_bounds__(THREADS) star(Star s, Rows rows, char *scratch, u64 row_bytes) {
    extern __shared__ double shared_memory[];
    __shared__ double room[THREADS / 32];
    __shared__ int bad, needed;
#ifdef SHARED
    double *weights = shared_memory;
#else
    double *weights = reinterpret_cast<double *>(scratch + blockIdx.x * row_bytes);
#endif
    int classes = s.class_count, attributes = s.attribute_count;
    // Of each attribute its score and what is known of it; of each kind and attribute a cell.
    REAL *scores = reinterpret_cast<REAL *>(weights + classes);
    Cell *table = reinterpret_cast<Cell *>(scores + 2 * attributes);
    REAL *told = scores + attributes;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, to_do = rows_to_do(rows);
    for (int at = blockIdx.x; at < to_do; at += gridDim.x) {
        int row = row_at(rows, at);
        const SCORE *given = rows.scores + u64(row % rows.scored) * s.labels;
        const i8 *known = known_of(rows, row, s.labels);
        __syncthreads();
        if (threadIdx.x == 0) bad = needed = 0;
        __syncthreads();
        for (int a = threadIdx.x; a < attributes; a += blockDim.x) {
            int label = s.attributes[a], what = known ? read_known(known[label]) : 0;
            if (!is_usable(given[label]) || what > 1) bad = 1;
            scores[a] = REAL(double(given[label]) + s.bias[label]);
            told[a] = REAL(what);
#ifdef TABLES
            for (int k = 0; k < s.kind_count; k++)
                table[k * attributes + a] = cell_of(scores[a], what, s.kinds[2 * k], s.kinds[2 * k + 1]);
#endif
        }
        for (int c = threadIdx.x; c < classes; c += blockDim.x) {
            int label = s.classes[c], what = known ? read_known(known[label]) : 0;
            if (!is_usable(given[label]) || what > 1) bad = 1;
            if (what == 1) atomicAdd(&needed, 1);
        }
        __syncthreads();
        double most = MINUS_INFINITY;
        for (int c = warp; c < classes; c += blockDim.x / 32) {
            const u32 *kind_of = s.kind_of + u64(c) * attributes;
            double sum = 0;
            for (int a = lane; a < attributes; a += 32) {
#ifdef TABLES
                sum += double(table[kind_of[a] * attributes + a].level);
#else
                const REAL *costs = s.kinds + 2 * u64(kind_of[a]);
                sum += double(cell_of(scores[a], int(told[a]), costs[0], costs[1]).level);
#endif
            }
#pragma unroll
            for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            int label = s.classes[c], what = known ? read_known(known[label]) : 0;
            bool out = what < 0 || (what == 0 && needed > 0) || needed > 1;
            double weight = out ? MINUS_INFINITY : double(given[label]) + s.bias[label] - s.own[c] + sum;
            if (lane == 0) weights[c] = weight;
            most = fmax(most, weight);
        }
        most = over_block(most, room, true);
        bool possible = most > MINUS_INFINITY;
        double total = 0;
        for (int c = threadIdx.x; c < classes; c += blockDim.x) {
            double weight = possible ? exp(weights[c] - most) : 0;
            weights[c] = weight;
            total += weight;
        }
        total = over_block(total, room, false);
        int status = bad ? BAD_SCORE : possible ? ANSWERED : IMPOSSIBLE;
        SCORE *marginals = rows.marginals + u64(row) * s.labels;
        double scale = 1 / total;
        for (int c = threadIdx.x; c < classes; c += blockDim.x)
            marginals[s.classes[c]] = status ? SCORE(QUIET_NAN) : SCORE(weights[c] * scale);
        for (int a = threadIdx.x; a < attributes; a += blockDim.x) {
            double sum = 0;
            for (int c = 0; c < classes; c++) {
                u32 kind = s.kind_of[u64(c) * attributes + a];
#ifdef TABLES
                sum += weights[c] * double(table[kind * attributes + a].given);
#else
                if (weights[c] == 0) continue;
                const REAL *costs = s.kinds + 2 * u64(kind);
                sum += weights[c] * double(cell_of(scores[a], int(told[a]), costs[0], costs[1]).given);
#endif
            }
            marginals[s.attributes[a]] = status ? SCORE(QUIET_NAN) : SCORE(fmin(sum * scale, 1.0));
        }
        if (threadIdx.x == 0) {
            double value = possible ? s.constant + most + log(total) : MINUS_INFINITY;
            rows.log_partition[row] = bad ? QUIET_NAN : value;
            rows.status[row] = status;
        }
    }
}
