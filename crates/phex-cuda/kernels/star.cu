// One one-of group of classes, with attributes that are independent given the class, in closed form.
//
//   l(c, a) = log(exp(-off) + exp(l_a - on)),   p(c) ~ exp(l_c - own_c + sum_a l(c, a)),
//   p(x_a = 1) = sum_c p(c) exp(l_a - on - l(c, a))
//
// One row per block. The costs of a cell depend on its kind alone: where kinds are few (TABLES), l and the probability given
// the class are computed once for each kind and attribute, otherwise for each cell. First a warp takes a class and its lanes
// the attributes; then a thread takes an attribute and goes over the classes. So neighbouring threads read neighbouring
// cells both times. Weights of classes are doubles, because they are sums over all attributes. Cost per row:
// O(classes x attributes).

struct Star {
    const int *classes, *attributes;
    const double *own;
    // The costs of an attribute off and on, for each kind; the kind of each cell, class after class.
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

__device__ __forceinline__ Cell cell_of(REAL score, int evidence, REAL off, REAL on) {
    if (is_on(evidence)) return {score - on, REAL(1)};
    if (is_off(evidence)) return {-off, REAL(0)};
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
    // The score and the evidence of each attribute; a cell for each kind and attribute.
    REAL *scores = reinterpret_cast<REAL *>(weights + classes);
    Cell *table = reinterpret_cast<Cell *>(scores + 2 * attributes);
    REAL *codes = scores + attributes;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, to_do = rows_to_do(rows);
    for (int at = blockIdx.x; at < to_do; at += gridDim.x) {
        int row = row_at(rows, at);
        const SCORE *given = scores_of(rows, row, s.labels);
        const i8 *evidence = evidence_of(rows, row, s.labels);
        __syncthreads();
        if (threadIdx.x == 0) bad = needed = 0;
        __syncthreads();
        for (int a = threadIdx.x; a < attributes; a += blockDim.x) {
            int label = s.attributes[a], code = evidence_at(evidence, row, s.labels, label);
            if (!is_valid(given[label], code)) bad = 1;
            scores[a] = REAL(double(given[label]) + s.bias[label]);
            codes[a] = REAL(code);
#ifdef TABLES
            for (int k = 0; k < s.kind_count; k++)
                table[k * attributes + a] = cell_of(scores[a], code, s.kinds[2 * k], s.kinds[2 * k + 1]);
#endif
        }
        for (int c = threadIdx.x; c < classes; c += blockDim.x) {
            int label = s.classes[c], code = evidence_at(evidence, row, s.labels, label);
            if (!is_valid(given[label], code)) bad = 1;
            if (is_on(code)) atomicAdd(&needed, 1);
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
                sum += double(cell_of(scores[a], int(codes[a]), costs[0], costs[1]).level);
#endif
            }
#pragma unroll
            for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, step);
            int label = s.classes[c], code = evidence_at(evidence, row, s.labels, label);
            bool out = is_off(code) || (is_unknown(code) && needed > 0) || needed > 1;
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
        double scale = 1 / total;
        for (int c = threadIdx.x; c < classes; c += blockDim.x)
            store_marginal(rows, row, s.labels, s.classes[c], status ? SCORE(QUIET_NAN) : SCORE(weights[c] * scale));
        for (int a = threadIdx.x; a < attributes; a += blockDim.x) {
            double sum = 0;
            for (int c = 0; c < classes; c++) {
                u32 kind = s.kind_of[u64(c) * attributes + a];
#ifdef TABLES
                sum += weights[c] * double(table[kind * attributes + a].given);
#else
                if (weights[c] == 0) continue;
                const REAL *costs = s.kinds + 2 * u64(kind);
                sum += weights[c] * double(cell_of(scores[a], int(codes[a]), costs[0], costs[1]).given);
#endif
            }
            store_marginal(rows, row, s.labels, s.attributes[a], status ? SCORE(QUIET_NAN) : SCORE(fmin(sum * scale, 1.0)));
        }
        if (threadIdx.x == 0) {
            double value = possible ? s.constant + most + log(total) : MINUS_INFINITY;
            rows.log_partition[row] = bad ? QUIET_NAN : value;
            rows.status[row] = status;
        }
    }
}
