// Loopy belief propagation, undamped and symmetric: a node answers each message in the place where it read it.
//
//   rho' = (t rho + B) / (rho + t B)        rho the message from the other end, B the node's belief, t the pair's strength
//
// A new message needs only the belief of its sender and the message the other way, so no two nodes ever use the same place at
// the same time. In every other iteration a node finds its messages in its own places and leaves the answers there; in the
// next it finds them where the other ends left theirs. That takes one barrier per iteration, no second copy of the messages,
// and two reads and one write of shared memory per message; the last four messages are read once, because they stay in
// registers in between.
//
// The last iteration reads from elsewhere, so that in the end a node's own places hold its messages, as after other
// iterations. All messages start as 1, so it does not matter which kind of iteration is first.

#if ECHO
// An entry: the place of the other end's copy (14 bits), and which of the KINDS strengths the pair has (2 bits).
#define PLACE 0x3fffu

// The first entry of a node, and where its others start: four messages each, eight nodes side by side.
struct Partners {
    uint2 heads[NODE_ROUNDS];
    u32 starts[NODE_ROUNDS];
};

// Also replaces the number of messages of eight nodes by that of the node itself.
__device__ __forceinline__ void fill_partners(const Network &n, NodeCache &nodes, Partners &cache) {
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        int node = threadIdx.x + i * THREADS;
        cache.starts[i] = 0;
        cache.heads[i].x = cache.heads[i].y = 0;
        if (nodes.spans[i] == ~0u) continue;
        int2 reach = n.reach[node];
        cache.starts[i] = reach.x;
        cache.heads[i] = n.heads[node];
        nodes.spans[i] = (nodes.spans[i] & 0xffff) | u32(reach.y) << 16;
    }
}

#if NEAR
// Until beliefs are compared, the entries are in their place in shared memory.
#define NEAR_TAILS reinterpret_cast<uint2 *>(BELIEF)

__device__ __forceinline__ void load_tails(const Network &n, const Memory &memory) {
    for (int i = threadIdx.x; i < n.tail_count; i += THREADS) NEAR_TAILS[i] = n.tails[i];
}
#endif

__device__ __forceinline__ u32 entry_of(uint2 entries, int j) {
    u32 two = j < 2 ? entries.x : entries.y;
    return j % 2 ? two >> 16 : two;
}

__device__ __forceinline__ REAL strength_of(const REAL (&strengths)[4], u32 entry) {
    REAL t = strengths[0];
    if (KINDS > 1) t = entry & 0x4000u ? strengths[1] : t;
    if (KINDS > 2) {
        REAL other = entry & 0x4000u ? strengths[3] : strengths[2];
        t = entry & 0x8000u ? other : t;
    }
    return t;
}

// Four messages, or what is left: their places and their values.
struct Four {
    Vec message[4];
    u32 place[4];
};

template <bool ELSEWHERE>
__device__ __forceinline__ void find(const Memory &memory, const Network &n, Four &four, uint2 entries, u32 first,
                                     int count) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        four.place[j] = ELSEWHERE ? entry_of(entries, j) & PLACE : first + 8 * j;
#pragma unroll
        for (int r = 0; r < ROWS; r++) four.message[j].v[r] = 1;
        if (j < count) four.message[j] = SLOTS[four.place[j]];
    }
}

__device__ __forceinline__ void gather(const Four &four, REAL (&mantissa)[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        mantissa[r] *= (four.message[0].v[r] * four.message[1].v[r]) * (four.message[2].v[r] * four.message[3].v[r]);
}

__device__ __forceinline__ void answer(const Memory &memory, const Network &n, const Four &four, uint2 entries, int count,
                                       const Vec &belief, const REAL (&strengths)[4]) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        // Many labels have no more than two messages.
        if (j == 2 && count <= 2) break;
        REAL t = strength_of(strengths, entry_of(entries, j));
        Vec said;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            REAL heard = four.message[j].v[r];
            said.v[r] = (t * heard + belief.v[r]) * quick_inverse(heard + t * belief.v[r]);
        }
        if (j < count) SLOTS[four.place[j]] = said;
    }
}

// An iteration of a node. If COMPARED, its belief is compared with the last one, and stored to be compared with the next.
template <bool ELSEWHERE, bool COMPARED>
__device__ __forceinline__ void echo_node(const Network &n, const Memory &memory, const NodeCache &nodes, const Partners &cache,
                                          const REAL (&strengths)[4], int i, Watch &watch) {
    int node = threadIdx.x + i * THREADS, count = nodes.spans[i] >> 16;
    u32 first = nodes.spans[i] & 0xffff;
    // How many fours come before the last.
    int full = max(count - 1, 0) / 4;
#if NEAR
    const uint2 *tail = (COMPARED ? n.tails : NEAR_TAILS) + cache.starts[i];
#else
    const uint2 *tail = n.tails + cache.starts[i];
#endif
    REAL mantissa[ROWS];
    int exponent[ROWS];
    own_odds(nodes, i, mantissa, exponent);
    Four four;
    uint2 entries = cache.heads[i];
#pragma unroll 1
    for (int at = 0; at < full; at++) {
        find<ELSEWHERE>(memory, n, four, entries, first + 32 * at, 4);
        entries = tail[8 * at];
        gather(four, mantissa);
        if (at & 1) split_all(mantissa, exponent);
    }
    find<ELSEWHERE>(memory, n, four, entries, first + 32 * full, count - 4 * full);
    gather(four, mantissa);
    split_all(mantissa, exponent);
    Vec belief = believe(memory, node, mantissa, exponent, COMPARED ? &watch : nullptr);
    if (COMPARED || !NEAR) BELIEF[node] = belief;
    answer(memory, n, four, entries, count - 4 * full, belief, strengths);
    entries = cache.heads[i];
#pragma unroll 1
    for (int at = 0; at < full; at++) {
        find<ELSEWHERE>(memory, n, four, entries, first + 32 * at, 4);
        uint2 now = entries;
        entries = tail[8 * at];
        answer(memory, n, four, now, 4, belief, strengths);
    }
}

// An iteration of the nodes of a thread; and how much they changed, if they are compared.
template <bool COMPARED>
__device__ __forceinline__ void echo(const Network &n, const Memory &memory, const NodeCache &nodes, const Partners &cache,
                                     const REAL (&strengths)[4], bool elsewhere, Watch *watch) {
    Watch seen;
#pragma unroll
    for (int r = 0; r < ROWS; r++) seen.change[r] = seen.drift[r] = 0;
#pragma unroll
    for (int i = 0; i < NODE_ROUNDS; i++) {
        if (nodes.spans[i] == ~0u) continue;
        if (elsewhere) echo_node<true, COMPARED>(n, memory, nodes, cache, strengths, i, seen);
        else echo_node<false, COMPARED>(n, memory, nodes, cache, strengths, i, seen);
    }
#pragma unroll
    for (int r = 0; r < ROWS && COMPARED; r++) {
        watch->change[r] = larger(watch->change[r], seen.change[r]);
        watch->drift[r] = larger(watch->drift[r], seen.drift[r]);
    }
}
#endif
