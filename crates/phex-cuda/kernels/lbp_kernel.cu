// Loopy belief propagation: the kernel. See lbp.cu.

// The rows that a block takes next.
__device__ __forceinline__ void take(const Network &n, const Rows &rows, Taken &taken, int at, int to_do, int r) {
    int row = at < to_do ? row_at(rows, at) : -1;
    taken.row[r] = row;
    taken.scores[r] = rows.scores + (row < 0 ? 0 : u64(row % rows.scored) * n.labels);
    taken.known[r] = row < 0 ? nullptr : known_of(rows, row, n.labels);
}

// What a row says of a label, from its score: its log-odds.
__device__ __forceinline__ double log_odds(SCORE given, double bias, int known, int &bad) {
    double score = given;
    if (!is_usable(score) || known > 1) {
        bad = 1;
        score = 0;
    }
    return score + bias;
}

__device__ double state_log_odds(const Network &n, const Taken &taken, int r, int label, int &known, int &bad) {
    known = taken.known[r] ? read_known(taken.known[r][label]) : 0;
    return log_odds(taken.scores[r][label], n.bias[label], known, bad);
}

// What the rows say of a label.
struct Said {
    SCORE score[ROWS];
    int known[ROWS];
    double bias;
};

__device__ __forceinline__ Said read_label(const Network &n, const Taken &taken, int label) {
    Said said;
    said.bias = label < 0 ? 0 : n.bias[label];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        bool there = label >= 0 && taken.row[r] >= 0;
        said.score[r] = there ? taken.scores[r][label] : SCORE(0);
        said.known[r] = there && taken.known[r] ? read_known(taken.known[r][label]) : 0;
    }
    return said;
}

// Its odds, as mantissa and exponent. Known labels get odds that nothing outweighs; `offset` and `excess` make up for it in
// log Z.
__device__ __forceinline__ void weigh(const Said &said, Vec &own, Vec &exponent, Sums &offset, Sums &excess,
                                      int *bad) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int wrong = 0, known = said.known[r];
        double log = log_odds(said.score[r], said.bias, known, wrong);
        if (wrong) bad[r] = 1;
        if (known > 0) {
            offset.v[r] += log;
            excess.v[r] += KNOWN;
        }
        scaled_exp(known ? (known > 0 ? 1e300 : -1e300) : log, own.v[r], exponent.v[r]);
    }
}

#if CACHED || ECHO
// Takes the labels of rows in.
__device__ __forceinline__ void load_cached(const Network &n, const Memory &memory, const Taken &taken, NodeCache &nodes,
                                            Sums &offset, Sums &excess, int *bad) {
    // All are read before any is worked on: they wait for memory together.
    Said said[NODE_ROUNDS];
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) said[i] = read_label(n, taken, label_of(nodes, i));
    Vec ones;
#pragma unroll
    for (int r = 0; r < ROWS; r++) ones.v[r] = 1;
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        if (nodes.spans[i] == ~0u) continue;
        Vec own, exponent;
        weigh(said[i], own, exponent, offset, excess, bad);
        keep_own(nodes, i, own, exponent, excess);
        if (!NEAR) BELIEF[threadIdx.x + i * THREADS] = ones;
    }
#if NEAR
    bring_tails(n, memory);
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

// The rest of what a block begins with.
__device__ __noinline__ void load(const Network &n, const Memory &memory, const Taken &taken, Sums offset, Sums excess,
                                  double *all_offset, double *all_excess, double *room, int *bad) {
    Vec ones;
#pragma unroll
    for (int r = 0; r < ROWS; r++) ones.v[r] = 1;
    for (int i = threadIdx.x; i < n.slots; i += blockDim.x) SLOTS[i] = ones;
    for (int i = threadIdx.x; i < n.ports; i += blockDim.x) INCOMING[i] = CAVITY[i] = ones;
    for (int i = threadIdx.x; i < n.parts; i += blockDim.x) memory.part_in[i] = memory.part_cavity[i] = ones;
    for (int i = threadIdx.x; i < n.states; i += blockDim.x) memory.state_belief[i] = ones;
    // A group with a label that is known to be on has no other state, and with two none at all.
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane % ROWS;
    for (int group = warp; HAS_GROUPS && group < n.groups; group += blockDim.x / 32) {
        int from = n.group_start[group], to = n.group_start[group + 1], known, wrong = 0, left = 0;
        double on = 0;
        for (int s = from + lane / ROWS; s < to; s += ENTRY_LANES)
            if (taken.row[row] >= 0) {
                state_log_odds(n, taken, row, n.state_label[s], known, wrong);
                on += known > 0;
            }
        if (wrong) bad[row] = 1;
        on = row_sum(on);
        for (int s = from + lane / ROWS; s < to; s += ENTRY_LANES) {
            double log = 0;
            known = 0;
            if (taken.row[row] >= 0) log = state_log_odds(n, taken, row, n.state_label[s], known, wrong);
            bool possible = known == 0 ? on == 0 : (known > 0 && on == 1);
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
    // Vectors of two rows and more are whole doubles; one of a single float row may leave half of one.
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
            c = larger(c, __shfl_xor_sync(FULL, c, step));
            d = larger(d, __shfl_xor_sync(FULL, d, step));
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
        Answers answers, char *scratch, u64 block_bytes) {
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
                // Apart: what is done in every iteration is to fit the instruction cache. The first that is compared has
                // nothing to compare with yet.
                if (look || (NEAR && left < 3)) echo<true>(n, memory, nodes, partners, strengths, elsewhere, look ? &watch : &nothing);
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
                answers.residual[row] = change[r];
                answers.iterations[row] = done;
                answers.converged[row] = change[r] <= fmax(course.tolerance, 1e-6) && drift[r] <= course.drift;
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
