// Loopy belief propagation: what a thread needs of its nodes and edges in every iteration, kept in registers. A thread has
// NODE_ROUNDS nodes and EDGE_ROUNDS edges; indices fit 16 bits. A block's rows then leave shared memory only at the end.

#if CACHED || ECHO
struct NodeCache {
    // Where the messages of a node start, and how many its eight nodes have at most.
    u32 spans[NODE_ROUNDS];
    // Two labels each.
    u32 labels[(NODE_ROUNDS + 1) / 2];
    REAL own[NODE_ROUNDS][ROWS];
    // Two exponents each. Those of labels with evidence are cut off, as beliefs in messages are too.
    u32 exponents[NODE_ROUNDS][(ROWS + 1) / 2];
};

__device__ __forceinline__ void fill_spans(const Network &n, NodeCache &cache) {
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        int node = threadIdx.x + i * THREADS;
        int label = node < n.nodes ? n.node_label[node] : -1;
        // A place without a node has nothing to do.
        cache.spans[i] = ~0u;
        if (label >= 0) cache.spans[i] = u32(n.slot_base[node >> 3] + (node & 7)) | u32(n.degree[node >> 3]) << 16;
        u32 kept = u32(label) & 0xffff;
        cache.labels[i / 2] = i % 2 ? cache.labels[i / 2] | kept << 16 : kept;
    }
}

// The label of a node, or -1.
__device__ __forceinline__ int label_of(const NodeCache &cache, int i) {
    u32 label = cache.labels[i / 2] >> (i % 2 * 16) & 0xffff;
    return label == 0xffff ? -1 : int(label);
}

// Keeps the own odds of a node; `excess` makes up for what is cut off.
__device__ __forceinline__ void keep_own(NodeCache &cache, int i, const Vec &own, const Vec &exponent, Sums &excess) {
    u32 packed[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        cache.own[i][r] = own.v[r];
        int kept = max(min(int(exponent.v[r]), 16000), -16000);
        if (kept == 16000) excess.v[r] -= double(exponent.v[r]) - 16000;
        packed[r] = u32(kept + 16384);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r += 2)
        cache.exponents[i][r / 2] = packed[r] | (r + 1 < ROWS ? packed[(r + 1) % ROWS] << 16 : 0);
}

__device__ __forceinline__ void own_odds(const NodeCache &cache, int i, REAL (&mantissa)[ROWS], int (&exponent)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        mantissa[r] = cache.own[i][r];
        exponent[r] = int(cache.exponents[i][r / 2] >> (r % 2 * 16) & 0xffff) - 16384;
    }
}

__device__ __forceinline__ void split_all(REAL (&mantissa)[ROWS], int (&exponent)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) mantissa[r] = split(mantissa[r], exponent[r]);
}

// The belief of a node from the messages in its own places, as mantissa and exponent.
__device__ __forceinline__ void hear_cached(const Network &n, const Memory &memory, const NodeCache &cache, int i,
                                            REAL (&mantissa)[ROWS], int (&exponent)[ROWS]) {
    own_odds(cache, i, mantissa, exponent);
    const Vec *slot = SLOTS + (cache.spans[i] & 0xffff);
    int degree = cache.spans[i] >> 16;
    for (; degree >= SAFE; degree -= SAFE, slot += 8 * SAFE) {
        // Four at a time: their accesses overlap, and more would not fit the registers.
#pragma unroll
        for (int half = 0; half < SAFE; half += 4) {
            Vec message[4];
#pragma unroll
            for (int j = 0; j < 4; j++) message[j] = slot[8 * (half + j)];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                mantissa[r] *= (message[0].v[r] * message[1].v[r]) * (message[2].v[r] * message[3].v[r]);
        }
        split_all(mantissa, exponent);
    }
    for (; degree > 0; degree--, slot += 8) {
        Vec message = *slot;
#pragma unroll
        for (int r = 0; r < ROWS; r++) mantissa[r] *= message.v[r];
    }
    split_all(mantissa, exponent);
}

// The belief from mantissa and exponent; and how it changed, if `watch` is given.
__device__ __forceinline__ Vec believe(const Memory &memory, int node, const REAL (&mantissa)[ROWS],
                                       const int (&exponent)[ROWS], Watch *watch) {
    Vec before, belief;
    if (watch) before = BELIEF[node];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        belief.v[r] = as_odds(mantissa[r], exponent[r]);
        if (watch) watch_change(*watch, r, before.v[r], belief.v[r]);
    }
    return belief;
}
#endif

#if CACHED
struct EdgeCache {
    u32 ends[EDGE_ROUNDS], places[EDGE_ROUNDS];
    REAL t[EDGE_ROUNDS];
};

__device__ __forceinline__ void fill_edges(const Network &n, EdgeCache &cache) {
#pragma unroll
    for (int i = 0; i < EDGE_ROUNDS; i++) {
        int at = threadIdx.x + i * THREADS;
        uint4 edge = at < n.edge_count ? n.edges[at] : make_uint4(~0u, ~0u, ~0u, ~0u);
        cache.ends[i] = edge.x == ~0u ? ~0u : edge.x | edge.y << 16;
        cache.places[i] = edge.z | edge.w << 16;
        cache.t[i] = at < n.edge_count ? n.weights[at] : REAL(1);
    }
}

__device__ __forceinline__ void visit_cached_nodes(const Network &n, const Memory &memory, const NodeCache &cache,
                                                   Watch *watch) {
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        if (cache.spans[i] == ~0u) continue;
        REAL mantissa[ROWS];
        int exponent[ROWS];
        hear_cached(n, memory, cache, i, mantissa, exponent);
        int node = threadIdx.x + i * THREADS;
        BELIEF[node] = believe(memory, node, mantissa, exponent, watch);
    }
}

__device__ __forceinline__ void visit_cached_edges(const Network &n, const Memory &memory, const EdgeCache &cache,
                                                   const Course &course) {
#pragma unroll
    for (int i = 0; i < EDGE_ROUNDS; i++) {
        if (cache.ends[i] == ~0u) continue;
        Vec a = BELIEF[cache.ends[i] & 0xffff], b = BELIEF[cache.ends[i] >> 16];
        Vec &place_a = SLOTS[cache.places[i] & 0xffff], &place_b = SLOTS[cache.places[i] >> 16];
        Vec to_a = place_a, to_b = place_b;
#pragma unroll
        for (int r = 0; r < ROWS; r++) mild_messages(course, cache.t[i], a.v[r], b.v[r], to_a.v[r], to_b.v[r]);
        place_a = to_a;
        place_b = to_b;
    }
}
#endif
