// Loopy belief propagation: marginals and the Bethe log Z of the rows that stop.
//
//   log Z = sum_i log Z_i + sum_f (log Z_f - sum_{i in f} log Z_i)
//
// The rows of a block stop one by one. Answering a row does not touch those that go on, so that a row's answer does not
// depend on its neighbours.

struct Diagnosis {
    double *residual;
    int *iterations;
    int *converged;
};

// The rows of a block: their indices or -1, their scores, and the codes of their evidence or null.
struct Taken {
    int row[ROWS];
    const SCORE *scores[ROWS];
    const i8 *codes[ROWS];
    __device__ __forceinline__ int evidence(int r, int label) const { return codes[r] ? int(codes[r][label]) : UNKNOWN; }
};

// A long product, as mantissa and exponent.
struct Product {
    REAL mantissa;
    long long exponent;
    __device__ void times(REAL x, int more) {
        mantissa = split(mantissa * x, more);
        exponent += more;
    }
};

// One per row.
struct Products {
    Product of[ROWS];
};

// The block's sum of one number per row, in a fixed order.
__device__ void block_sum(const Sums &value, double *room, double *out) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        double sum = warp_sum(value.v[r]);
        if (lane == 0) room[warp * ROWS + r] = sum;
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
        double all = 0;
        for (int w = 0; w < blockDim.x / 32; w++) all += room[w * ROWS + threadIdx.x];
        out[threadIdx.x] = all;
    }
    __syncthreads();
}

// The logarithms of the products over the block without their exponents, of which each thread keeps its own.
__device__ void block_product(const Products &products, Sums &exponents, double *room, double *out) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        // Mantissas below 2: the product of 32 is below 2^32.
        double all = products.of[r].mantissa;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) all *= __shfl_xor_sync(ALL_LANES, all, step);
        int more = 0;
        all = split(all, more);
        exponents.v[r] = double(products.of[r].exponent) + (lane == 0 ? more : 0);
        if (lane == 0) room[warp * ROWS + r] = all;
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
        double all = 1;
        for (int w = 0; w < blockDim.x / 32; w++) all *= room[w * ROWS + threadIdx.x];
        out[threadIdx.x] = log(all);
    }
    __syncthreads();
}

__device__ void add_larger(const Network &n, const Memory &memory, Sums &out) {
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32, row = lane % ROWS;
    double mine = 0;
    for (int i = threadIdx.x; HAS_GROUPS && i < n.groups * ROWS; i += blockDim.x) {
        double term = log(memory.group_total[i]) + memory.group_exponent[i] * LN_2;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r == i % ROWS) out.v[r] += term;
    }
    for (int link = warp; HAS_GROUPS && link < n.links; link += warps) {
        double off, on, odds = one(CAVITY, n.link_port[link], row);
        link_sums(n, memory, link, lane, off, on);
        double total = memory.group_total[n.link_group[link] * ROWS + row];
        if (lane < ROWS)
            mine += log((off + on * odds) / (1 + odds)) - log(total) + port_term(n, memory, n.link_port[link], row);
    }
    for (int part = warp; HAS_GROUPS && part < n.parts; part += warps) {
        double here, rest, total = memory.group_total[n.part_group[part] * ROWS + row];
        part_weights(n, memory, part, lane, here, rest);
        if (lane < ROWS) mine += log(rest + here / double(one(memory.part_in, part, row))) - log(total);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (r == row) out.v[r] += mine;
    if (HAS_FACTORS) add_counts(n, memory, out);
}

// The belief of a node from its final messages, for the rows in the mask; and its term of log Z.
__device__ __forceinline__ void settle_node(const Network &n, const Memory &memory, int node, bool counts, int mask,
                                            const REAL (&mantissa)[ROWS], const int (&exponent)[ROWS],
                                            Products &products) {
    Vec belief = BELIEF[node];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        REAL odds = as_odds(mantissa[r], exponent[r]);
        // 1 + B, or B itself where it is so large that the 1 is lost and B would be cut off.
        bool whole = exponent[r] > EXPONENT - 1;
        if (counts) products.of[r].times(whole ? mantissa[r] : 1 + odds, whole ? exponent[r] : 0);
        if (mask >> r & 1) belief.v[r] = odds;
    }
    BELIEF[node] = belief;
    tell_factors(n, memory, node, mantissa, exponent, mask);
}

#if CACHED || ECHO
__device__ __forceinline__ void settle_cached(const Network &n, const Memory &memory, const NodeCache &cache, int mask,
                                              Products &products) {
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        if (cache.spans[i] == ~0u) continue;
        REAL mantissa[ROWS];
        int exponent[ROWS];
        hear_cached(n, memory, cache, i, mantissa, exponent);
        settle_node(n, memory, threadIdx.x + i * THREADS, true, mask, mantissa, exponent, products);
    }
}
#else
__device__ __noinline__ void settle_nodes(const Network &n, const Memory &memory, int mask, Products &products) {
    for (int node = threadIdx.x; node < n.nodes; node += blockDim.x) {
        REAL mantissa[ROWS];
        int exponent[ROWS];
        hear(n, memory, node, mantissa, exponent);
        settle_node(n, memory, node, n.node_label[node] >= 0, mask, mantissa, exponent, products);
    }
}
#endif

#ifdef MILD
#define MILD_WEIGHTS 1
#else
#define MILD_WEIGHTS 4
#endif

// Z_f / (Z_a Z_b) of a pair: (1, C) / (1 + B) with C = B / rho.
__device__ __forceinline__ void settle_edge(const Network &n, const Memory &memory, uint4 edge, const REAL (&w)[MILD_WEIGHTS],
                                            Products &products) {
    Vec a = BELIEF[edge.x], b = BELIEF[edge.y];
    Vec to_a = SLOTS[edge.z], to_b = SLOTS[edge.w];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#ifdef MILD
        // One inverse for all four: beliefs and messages are too close to 1 to overflow.
        REAL both = to_a.v[r] * to_b.v[r], below = (1 + a.v[r]) * (1 + b.v[r]) * both;
        REAL above = a.v[r] * b.v[r] + both + w[0] * (to_a.v[r] * b.v[r] + a.v[r] * to_b.v[r]);
        REAL sum = above * quick_inverse(below);
#else
        REAL off_a = quick_inverse(1 + a.v[r]), off_b = quick_inverse(1 + b.v[r]);
        REAL on_a = a.v[r] * off_a * quick_inverse(to_a.v[r]), on_b = b.v[r] * off_b * quick_inverse(to_b.v[r]);
        REAL sum = w[3] * on_a * on_b + w[0] * off_a * off_b + (w[1] * off_a * on_b + w[2] * on_a * off_b);
#endif
        products.of[r].times(larger(sum, 1 / WIDE), 0);
    }
}

// log Z of the rows in the mask, from the products over their nodes.
__device__ __noinline__ void settle(const Network &n, const Memory &memory, int mask, Products products,
                                    const double *excess, double *all, double *total, double *room) {
    __syncthreads();
    // Two at a time, so that they wait for memory together.
    for (int first = threadIdx.x; first < n.edge_count; first += 2 * blockDim.x) {
        uint4 edge[2];
        REAL weights[2][MILD_WEIGHTS];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int at = min(first + i * blockDim.x, n.edge_count - 1);
            edge[i] = n.edges[at];
#pragma unroll
            for (int w = 0; w < MILD_WEIGHTS; w++) weights[i][w] = n.weights[MILD_WEIGHTS * at + w];
            if (first + i * blockDim.x >= n.edge_count) edge[i].x = 0xffffffffu;
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (edge[i].x != 0xffffffffu) settle_edge(n, memory, edge[i], weights[i], products);
    }
    if (HAS_GROUPS) {
        weigh_groups(n, memory, mask, nullptr, room);
        tell_parts(n, memory, mask);
    }
    __syncthreads();
    Sums exponents;
    block_product(products, exponents, room, all);
    block_sum(exponents, room, total);
    // Exponents are integers: those of labels with evidence cancel exactly.
    if (threadIdx.x < ROWS) all[threadIdx.x] += (total[threadIdx.x] - excess[threadIdx.x]) * LN_2;
    if (HAS_PORTS || HAS_GROUPS) {
        Sums larger;
#pragma unroll
        for (int r = 0; r < ROWS; r++) larger.v[r] = 0;
        add_larger(n, memory, larger);
        block_sum(larger, room, total);
        if (threadIdx.x < ROWS) all[threadIdx.x] += total[threadIdx.x];
    }
    __syncthreads();
}

// The marginal of a label for the rows in the mask: exactly 1 or 0 where evidence says so.
__device__ __forceinline__ void store_node(const Network &n, const Memory &memory, int node, int label, const Rows &rows,
                                           const Taken &taken, int mask, const int *status) {
    if (label < 0) return;
    Vec belief = BELIEF[node];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (!(mask >> r & 1)) continue;
        REAL odds = belief.v[r], p = odds * near_inverse(1 + odds);
        int evidence = taken.evidence(r, label);
        if (!is_unknown(evidence)) p = is_on(evidence) ? 1 : 0;
        rows.marginals[u64(taken.row[r]) * n.labels + label] = status[r] ? SCORE(QUIET_NAN) : SCORE(p > 1 ? REAL(1) : p);
    }
}

#if CACHED || ECHO
__device__ __forceinline__ void store_cached(const Network &n, const Memory &memory, const NodeCache &cache, const Rows &rows,
                                             const Taken &taken, int mask, const int *status) {
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++)
        store_node(n, memory, threadIdx.x + i * THREADS, label_of(cache, i), rows, taken, mask, status);
}
#else
__device__ __noinline__ void store_nodes(const Network &n, const Memory &memory, const Rows &rows, const Taken &taken, int mask,
                                         const int *status) {
    for (int node = threadIdx.x; node < n.nodes; node += blockDim.x)
        store_node(n, memory, node, n.node_label[node], rows, taken, mask, status);
}
#endif

__device__ __noinline__ void store_groups(const Network &n, const Memory &memory, const Rows &rows, const Taken &taken,
                                          int mask, const int *status) {
    for (int group = 0; group < n.groups; group++)
        for (int r = 0; r < ROWS; r++) {
            if (!(mask >> r & 1)) continue;
            double total = memory.group_total[group * ROWS + r];
            for (int s = n.group_start[group] + threadIdx.x; s < n.group_start[group + 1]; s += blockDim.x) {
                double p = double(one(memory.state_weight, s, r)) / total;
                SCORE &place = rows.marginals[u64(taken.row[r]) * n.labels + n.state_label[s]];
                place = status[r] ? SCORE(QUIET_NAN) : SCORE(fmin(p, 1.0));
            }
        }
}
