// Loopy belief propagation: rows in, iterations until each row has converged, marginals and Bethe's log Z out.
//
//   log Z = sum_i log Z_i + sum_f (log Z_f - sum_{i in f} log Z_i)
//
// Rows of a block stop one by one; those that go on are not touched by answering the others, so that a row's answer
// does not depend on its neighbours.

struct Answers {
    double *residual;
    int *iterations;
    int *converged;
};

// The rows of a block: their indices, or -1; their scores; what is known of their labels, or null.
struct Taken {
    int row[ROWS];
    const SCORE *scores[ROWS];
    const i8 *known[ROWS];
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

// The block's sum of a number a row, in a fixed order.
__device__ void block_sum(const double (&value)[ROWS], double *room, double *out) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        double sum = warp_sum(value[r]);
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

// The logarithms of the products over the block, less their exponents' part, which are added to `exponents`.
__device__ void block_product(const Product (&product)[ROWS], double (&exponents)[ROWS], double *room, double *out) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        // Mantissas below 2: the product of 32 is below 2^32.
        double all = product[r].mantissa;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) all *= __shfl_xor_sync(FULL, all, step);
        int more = 0;
        all = split(all, more);
        exponents[r] = double(product[r].exponent) + (lane == 0 ? more : 0);
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

// ln(1 + C) - ln(1 + B) of a port.
__device__ double port_term(const Memory &memory, int port, int r) {
    double cavity = one(memory.cavity, port, r), belief = cavity * double(one(memory.incoming, port, r));
    return log1p(cavity) - log1p(belief);
}

__device__ void add_larger(const Network &n, const Memory &memory, double (&out)[ROWS]) {
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, lane = threadIdx.x % 32, row = lane % ROWS;
    double mine = 0;
    for (int i = threadIdx.x; HAS_GROUPS && i < n.groups * ROWS; i += blockDim.x) {
        double term = log(memory.group_total[i]) + memory.group_exponent[i] * LN_2;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r == i % ROWS) out[r] += term;
    }
    for (int link = warp; HAS_GROUPS && link < n.links; link += warps) {
        double off, on, odds = one(memory.cavity, n.link_port[link], row);
        link_sums(n, memory, link, lane, off, on);
        double total = memory.group_total[n.link_group[link] * ROWS + row];
        if (lane < ROWS)
            mine += log((off + on * odds) / (1 + odds)) - log(total) + port_term(memory, n.link_port[link], row);
    }
    for (int part = warp; HAS_GROUPS && part < n.parts; part += warps) {
        double here, rest, total = memory.group_total[n.part_group[part] * ROWS + row];
        part_weights(n, memory, part, lane, here, rest);
        if (lane < ROWS) mine += log(rest + here / double(one(memory.part_in, part, row))) - log(total);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (r == row) out[r] += mine;
    for (int task = warp; HAS_FACTORS && task < n.factors * ROWS; task += warps) {
        int factor = task / ROWS, r = task % ROWS;
        Count c = count_members(n, memory, factor, r, lane);
        double term = count_energy(n, c, factor, lane);
        for (int i = 0; i < c.k; i++) {
            int member = n.members[n.factor_start[factor] + i];
            if (member >= 0) term += port_term(memory, member, r);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i == r && lane == 0) out[i] += term;
        __syncwarp();
    }
}

// Beliefs of the rows in the mask from their final messages, and their log Z.
__device__ __noinline__ void settle(const Network &n, const Memory &memory, int mask, const double *excess,
                                    double *all, double *total, double *room) {
    Product product[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) product[r] = {1, 0};
    for (int node = threadIdx.x; node < n.nodes; node += blockDim.x) {
        REAL mantissa[ROWS], odds[ROWS];
        int exponent[ROWS];
        hear(n, memory, node, mantissa, exponent);
        Vec belief = BELIEF[node];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            odds[r] = as_odds(mantissa[r], exponent[r]);
            // 1 + B, or B itself where the 1 is lost anyway and B is cut off.
            bool whole = exponent[r] > EXPONENT - 1;
            if (n.node_label[node] >= 0) product[r].times(whole ? mantissa[r] : 1 + odds[r], whole ? exponent[r] : 0);
            if (mask >> r & 1) belief.v[r] = odds[r];
        }
        BELIEF[node] = belief;
        tell_factors(n, memory, node, odds, mask);
    }
    __syncthreads();
    for (int at = threadIdx.x; at < n.edge_count; at += blockDim.x) {
        uint4 edge = n.edges[at];
        if (edge.x == 0xffffffffu) continue;
#ifdef MILD
        REAL t = n.weights[at];
#else
        REAL w00 = n.weights[4 * at], w01 = n.weights[4 * at + 1];
        REAL w10 = n.weights[4 * at + 2], w11 = n.weights[4 * at + 3];
#endif
        Vec a = BELIEF[edge.x], b = BELIEF[edge.y];
        Vec to_a = SLOTS[edge.z], to_b = SLOTS[edge.w];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            // (1, C) / (1 + B) with C = B / rho: the sum is Z_f / (Z_a Z_b).
#ifdef MILD
            // One inverse for all four: beliefs and messages are too near 1 to overflow.
            REAL both = to_a.v[r] * to_b.v[r], below = (1 + a.v[r]) * (1 + b.v[r]) * both;
            REAL above = a.v[r] * b.v[r] + both + t * (to_a.v[r] * b.v[r] + a.v[r] * to_b.v[r]);
            REAL sum = above * quick_inverse(below);
#else
            REAL off_a = quick_inverse(1 + a.v[r]), off_b = quick_inverse(1 + b.v[r]);
            REAL on_a = a.v[r] * off_a * quick_inverse(to_a.v[r]), on_b = b.v[r] * off_b * quick_inverse(to_b.v[r]);
            REAL sum = w11 * on_a * on_b + w00 * off_a * off_b + (w01 * off_a * on_b + w10 * on_a * off_b);
#endif
            product[r].times(larger(sum, 1 / WIDE), 0);
        }
    }
    if (HAS_GROUPS) {
        weigh_groups(n, memory, mask, nullptr);
        tell_parts(n, memory, mask);
    }
    __syncthreads();
    double exponents[ROWS];
    block_product(product, exponents, room, all);
    block_sum(exponents, room, total);
    // Exponents are integers: what is known cancels exactly.
    if (threadIdx.x < ROWS) all[threadIdx.x] += (total[threadIdx.x] - excess[threadIdx.x]) * LN_2;
    if (HAS_PORTS || HAS_GROUPS) {
        double larger[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) larger[r] = 0;
        add_larger(n, memory, larger);
        block_sum(larger, room, total);
        if (threadIdx.x < ROWS) all[threadIdx.x] += total[threadIdx.x];
    }
    __syncthreads();
}

// Marginals of the rows in the mask, known labels exactly.
__device__ __noinline__ void store(const Network &n, const Memory &memory, const Rows &rows, const Taken &taken, int mask,
                                   const int *status) {
    const int *node_label = n.node_label;
    int nodes = n.nodes, labels = n.labels;
    SCORE *marginals = rows.marginals;
    for (int node = threadIdx.x; node < nodes; node += blockDim.x) {
        int label = node_label[node];
        if (label < 0) continue;
        Vec belief = BELIEF[node];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!(mask >> r & 1)) continue;
            REAL odds = belief.v[r], p = odds * inverse(1 + odds);
            int told = taken.known[r] ? read_known(taken.known[r][label]) : 0;
            if (told) p = told > 0 ? 1 : 0;
            marginals[u64(taken.row[r]) * labels + label] = status[r] ? SCORE(QUIET_NAN) : SCORE(p > 1 ? REAL(1) : p);
        }
    }
    for (int group = 0; HAS_GROUPS && group < n.groups; group++)
        for (int r = 0; r < ROWS; r++) {
            if (!(mask >> r & 1)) continue;
            double total = memory.group_total[group * ROWS + r];
            for (int s = n.group_start[group] + threadIdx.x; s < n.group_start[group + 1]; s += blockDim.x) {
                double p = double(one(memory.state_weight, s, r)) / total;
                SCORE &place = marginals[u64(taken.row[r]) * labels + n.state_label[s]];
                place = status[r] ? SCORE(QUIET_NAN) : SCORE(fmin(p, 1.0));
            }
        }
}
