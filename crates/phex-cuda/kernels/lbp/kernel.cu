// Loopy belief propagation: the kernel. Loads rows, iterates until each has converged or all iterations are done, stores them.

// Takes the next row of a block.
__device__ __forceinline__ void take(const Network &n, const Rows &rows, Taken &taken, int at, int to_do, int r) {
    int row = at < to_do ? row_at(rows, at) : -1;
    taken.row[r] = row;
    taken.scores[r] = scores_of(rows, max(row, 0), n.labels);
    taken.codes[r] = row < 0 ? nullptr : evidence_of(rows, row, n.labels);
}

// The log-odds of a label from its score alone.
__device__ __forceinline__ double log_odds(SCORE given, double bias, int evidence, int &bad) {
    double score = given;
    if (!is_valid(score, evidence)) {
        bad = 1;
        score = 0;
    }
    return score + bias;
}

__device__ double state_log_odds(const Network &n, const Taken &taken, int r, int label, int &evidence, int &bad) {
    evidence = taken.evidence(r, label);
    return log_odds(taken.scores[r][label], n.bias[label], evidence, bad);
}

// The score and the evidence of a label in each row.
struct LabelInput {
    SCORE score[ROWS];
    int evidence[ROWS];
    double bias;
};

__device__ __forceinline__ LabelInput read_label(const Network &n, const Taken &taken, int label) {
    LabelInput input;
    input.bias = label < 0 ? 0 : n.bias[label];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        bool there = label >= 0 && taken.row[r] >= 0;
        input.score[r] = there ? taken.scores[r][label] : SCORE(0);
        input.evidence[r] = there ? taken.evidence(r, label) : UNKNOWN;
    }
    return input;
}

// The odds of a label, as mantissa and exponent. With evidence they are such that nothing outweighs them; `offset` and
// `excess` make up for that in log Z.
__device__ __forceinline__ void weigh(const LabelInput &input, Vec &own, Vec &exponent, Sums &offset, Sums &excess,
                                      int *bad) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int wrong = 0, evidence = input.evidence[r];
        double log = log_odds(input.score[r], input.bias, evidence, wrong);
        if (wrong) bad[r] = 1;
        if (is_on(evidence)) {
            offset.v[r] += log;
            excess.v[r] += CERTAIN_EXPONENT;
        }
        double own_log = is_unknown(evidence) ? log : is_on(evidence) ? 1e300 : -1e300;
        scaled_exp(own_log, own.v[r], exponent.v[r]);
    }
}

#if CACHED || ECHO
// Loads the labels of a thread.
__device__ __forceinline__ void load_cached(const Network &n, const Memory &memory, const Taken &taken, NodeCache &nodes,
                                            Sums &offset, Sums &excess, int *bad) {
    // All are read before any is used, so that they wait for memory together.
    LabelInput input[NODE_ROUNDS];
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) input[i] = read_label(n, taken, label_of(nodes, i));
    Vec ones;
#pragma unroll
    for (int r = 0; r < ROWS; r++) ones.v[r] = 1;
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        if (nodes.spans[i] == ~0u) continue;
        Vec own, exponent;
        weigh(input[i], own, exponent, offset, excess, bad);
        keep_own(nodes, i, own, exponent, excess);
        if (!NEAR) BELIEF[threadIdx.x + i * THREADS] = ones;
    }
#if NEAR
    load_tails(n, memory);
#endif
}
#else
__device__ __noinline__ void load_nodes(const Network &n, const Memory &memory, const Taken &taken, Sums &offset,
                                        Sums &excess, int *bad) {
    Vec ones;
#pragma unroll
    for (int r = 0; r < ROWS; r++) ones.v[r] = 1;
    for (int node = threadIdx.x; node < n.nodes; node += blockDim.x) {
        Vec own, exponent;
        weigh(read_label(n, taken, n.node_label[node]), own, exponent, offset, excess, bad);
        memory.own[node] = own;
        memory.own_exponent[node] = exponent;
        BELIEF[node] = ones;
    }
}
#endif

// Loads one-of groups, and sets all messages to 1.
__device__ __noinline__ void load(const Network &n, const Memory &memory, const Taken &taken, Sums offset, Sums excess,
                                  double *all_offset, double *all_excess, double *room, int *bad) {
    Vec ones;
#pragma unroll
    for (int r = 0; r < ROWS; r++) ones.v[r] = 1;
    for (int i = threadIdx.x; i < n.slots; i += blockDim.x) SLOTS[i] = ones;
    for (int i = threadIdx.x; i < n.ports; i += blockDim.x) INCOMING[i] = CAVITY[i] = ones;
    for (int i = threadIdx.x; i < n.parts; i += blockDim.x) memory.part_in[i] = memory.part_cavity[i] = ones;
    for (int i = threadIdx.x; i < n.states; i += blockDim.x) memory.state_belief[i] = ones;
    // If evidence says that a label of a group is on, no other state is possible; if two are on, none is.
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane % ROWS;
    for (int group = warp; HAS_GROUPS && group < n.groups; group += blockDim.x / 32) {
        int from = n.group_start[group], to = n.group_start[group + 1], evidence, wrong = 0, left = 0;
        double on = 0;
        for (int s = from + lane / ROWS; s < to; s += ENTRY_LANES)
            if (taken.row[row] >= 0) {
                state_log_odds(n, taken, row, n.state_label[s], evidence, wrong);
                on += is_on(evidence);
            }
        if (wrong) bad[row] = 1;
        on = row_sum(on);
        for (int s = from + lane / ROWS; s < to; s += ENTRY_LANES) {
            double log = 0;
            evidence = UNKNOWN;
            if (taken.row[row] >= 0) log = state_log_odds(n, taken, row, n.state_label[s], evidence, wrong);
            bool possible = is_unknown(evidence) ? on == 0 : (is_on(evidence) && on == 1);
            possible = possible && log > -1e300;
            left += possible;
            REAL exponent;
            scaled_exp(possible ? log : -1e300, one(memory.state_own, s, row), exponent);
            one(memory.state_own_exponent, s, row) = exponent;
        }
        double all = row_sum(double(left));
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r == row && lane < ROWS && all == 0) offset.v[r] = MINUS_INFINITY;
    }
    __syncthreads();
    block_sum(offset, room, all_offset);
    block_sum(excess, room, all_excess);
}

__device__ Memory memory_of(const Network &n, char *scratch, u64 block_bytes) {
    Memory memory;
    Vec *at = reinterpret_cast<Vec *>(scratch + blockIdx.x * block_bytes);
#ifndef SHARED
    memory.belief = at, at += n.nodes;
    memory.slots = at, at += n.slots;
#endif
#if !CACHED && !ECHO
    memory.own = at, at += n.nodes;
    memory.own_exponent = at, at += n.nodes;
#endif
#ifndef SHARED_PORTS
    memory.incoming = at, at += n.ports;
    memory.cavity = at, at += n.ports;
#endif
    memory.entry = at, at += n.entry_count;
    memory.state_own = at, at += n.states;
    memory.state_own_exponent = at, at += n.states;
    memory.state_exponent = at, at += n.states;
    memory.state_weight = at, at += n.states;
    memory.state_belief = at, at += n.states;
    memory.part_in = at, at += n.parts;
    memory.part_cavity = at, at += n.parts;
    // Vectors of two or more rows fill whole doubles; those of a single row of floats may end in the middle of one.
    double *wide = reinterpret_cast<double *>((reinterpret_cast<u64>(at) + 7) & ~u64(7));
    memory.group_total = wide, wide += n.groups * ROWS;
    memory.group_exponent = wide, wide += n.groups * ROWS;
    memory.counts = wide;
    return memory;
}

// The largest change of each row over the block.
__device__ __forceinline__ void block_most(const Watch &watch, double *room, double *changes) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        REAL c = watch.change[r], d = watch.drift[r];
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            c = larger(c, __shfl_xor_sync(ALL_LANES, c, step));
            d = larger(d, __shfl_xor_sync(ALL_LANES, d, step));
        }
        if (lane == 0) {
            room[(warp * ROWS + r) * 2] = c;
            room[(warp * ROWS + r) * 2 + 1] = d;
        }
    }
    __syncthreads();
    if (threadIdx.x < ROWS) {
        double change = 0, drift = 0;
        for (int w = 0; w < blockDim.x / 32; w++) {
            change = fmax(change, room[(w * ROWS + threadIdx.x) * 2]);
            drift = fmax(drift, room[(w * ROWS + threadIdx.x) * 2 + 1]);
        }
        changes[threadIdx.x] = change;
        changes[ROWS + threadIdx.x] = drift;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    lbp(const __grid_constant__ Network n, const __grid_constant__ Course course, const __grid_constant__ Rows rows,
        Diagnosis diagnosis, char *scratch, u64 block_bytes) {
    __shared__ double room[THREADS / 32 * ROWS * 2], offset[ROWS], excess[ROWS], log_partition[ROWS], total[ROWS];
    __shared__ double changes[2 * ROWS];
    __shared__ int bad[ROWS], status[ROWS];
    __shared__ Taken taken;
    Memory memory = memory_of(n, scratch, block_bytes);
    int to_do = rows_to_do(rows);
#if CACHED || ECHO
    NodeCache nodes;
    fill_spans(n, nodes);
#endif
#if CACHED
    EdgeCache edges;
    fill_edges(n, edges);
#endif
#if ECHO
    Partners partners;
    fill_partners(n, nodes, partners);
    REAL strengths[4] = {n.strengths[0], n.strengths[1], n.strengths[2], n.strengths[3]};
#endif
    for (int first = blockIdx.x * ROWS; first < to_do; first += gridDim.x * ROWS) {
        __syncthreads();
        if (threadIdx.x < ROWS) {
            take(n, rows, taken, first + threadIdx.x, to_do, threadIdx.x);
            bad[threadIdx.x] = 0;
        }
        __syncthreads();
        Sums own_offset, own_excess;
#pragma unroll
        for (int r = 0; r < ROWS; r++) own_offset.v[r] = own_excess.v[r] = 0;
#if CACHED || ECHO
        load_cached(n, memory, taken, nodes, own_offset, own_excess, bad);
#else
        load_nodes(n, memory, taken, own_offset, own_excess, bad);
#endif
        load(n, memory, taken, own_offset, own_excess, offset, excess, room, bad);
        int active = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) active |= int(taken.row[r] >= 0) << r;
        for (int done = 0; active;) {
            Watch watch;
#pragma unroll
            for (int r = 0; r < ROWS; r++) watch.change[r] = watch.drift[r] = 0;
#if ECHO
            Watch nothing = watch;
#endif
            bool last = done + course.stride >= course.iterations;
            for (int step = 0; step < course.stride; step++) {
                bool look = step + 2 >= course.stride && (last || course.may_stop);
                if (HAS_FACTORS) {
                    visit_counts(n, memory, course);
                    __syncthreads();
                }
                if (HAS_GROUPS) {
                    weigh_groups(n, memory, ~0, look ? &watch : nullptr, room);
                    tell_links(n, memory, course);
                    tell_parts(n, memory, ~0);
                    __syncthreads();
                }
#if ECHO
                int left = course.iterations - 1 - done - step;
                bool elsewhere = left % 2 == 0;
                // Two instances, so that the one of every iteration fits the instruction cache. The first iteration that
                // compares has nothing to compare with yet.
                if (look || (NEAR && left < 3))
                    echo<true>(n, memory, nodes, partners, strengths, elsewhere, look ? &watch : &nothing);
                else echo<false>(n, memory, nodes, partners, strengths, elsewhere, nullptr);
#elif CACHED
                if (look) visit_cached_nodes(n, memory, nodes, &watch);
                else visit_cached_nodes(n, memory, nodes, nullptr);
                __syncthreads();
                visit_cached_edges(n, memory, edges, course);
#else
                if (look) visit_nodes(n, memory, &watch);
                else visit_nodes(n, memory, nullptr);
                __syncthreads();
                visit_edges(n, memory, course);
#endif
                __syncthreads();
            }
            done += course.stride;
            if (!last && !course.may_stop) continue;
            block_most(watch, room, changes);
            const double *change = changes, *drift = changes + ROWS;
            int finished = 0;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                bool still = change[r] <= course.tolerance && drift[r] <= course.drift;
                if ((active >> r & 1) && (last || (still && course.may_stop))) finished |= 1 << r;
            }
            if (!finished) continue;
            Products products;
#pragma unroll
            for (int r = 0; r < ROWS; r++) products.of[r] = {1, 0};
#if CACHED || ECHO
            settle_cached(n, memory, nodes, finished, products);
#else
            settle_nodes(n, memory, finished, products);
#endif
            settle(n, memory, finished, products, excess, log_partition, total, room);
            int r = threadIdx.x;
            if (r < ROWS && (finished >> r & 1)) {
                double value = log_partition[r] + offset[r] + n.constant;
                int row = taken.row[r];
                status[r] = bad[r] ? BAD_SCORE : (value == MINUS_INFINITY ? IMPOSSIBLE : ANSWERED);
                rows.log_partition[row] = bad[r] ? QUIET_NAN : value;
                rows.status[row] = status[r];
                diagnosis.residual[row] = change[r];
                diagnosis.iterations[row] = done;
                diagnosis.converged[row] = change[r] <= fmax(course.tolerance, 1e-6) && drift[r] <= course.drift;
            }
            __syncthreads();
#if CACHED || ECHO
            store_cached(n, memory, nodes, rows, taken, finished, status);
#else
            store_nodes(n, memory, rows, taken, finished, status);
#endif
            if (HAS_GROUPS) store_groups(n, memory, rows, taken, finished, status);
            active &= ~finished;
            __syncthreads();
        }
    }
}
