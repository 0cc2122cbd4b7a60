// Loopy belief propagation in odds, with all messages sent at once (flooding): labels and pairs.
//
//   rho' = (psi10 rho + psi11 B) / (psi00 rho + psi01 B)        B the sender's belief, rho the message the other way
//
// A block takes ROWS rows. It keeps their beliefs and messages in shared memory (SHARED), or in its part of global memory where
// they do not fit. A thread handles both directions of an edge, so messages are replaced in place and two of them share one
// division. The numbers of all ROWS rows lie side by side, for one access of up to 16 bytes. Nodes of about the same degree
// lie side by side, node p has its messages at base(p / 8) + 8 j + p % 8, and edges come in eights whose ends all differ
// modulo 8: so neither phase has bank conflicts. Cost of an iteration per row: about 12 instructions per message. Without
// damping, echo.cu has a shorter way.
//
// HAS_GROUPS, HAS_FACTORS and HAS_PORTS are 0 for models without one-of groups, without cardinality factors, and without
// either; their code is then left out.

struct __align__(sizeof(REAL) * ROWS) Vec {
    REAL v[ROWS];
};

// Messages over pairs, and those of larger factors, are kept within MESSAGE and WIDE and their inverses. Beliefs whose odds
// are beyond LEAST may have been cut off; weights below FAINT or 2^LOST are dropped. Labels with evidence have the exponent
// CERTAIN_EXPONENT; beliefs are cut off at 2^EXPONENT for pairs and at 2^PORT_EXPONENT for larger factors.
#ifdef DOUBLE
#define MESSAGE 1.809251394333065554e75
#define WIDE 6.668014432879854e240
#define LEAST 1e-70
#define FAINT 1e-200
#define CERTAIN_EXPONENT 1073741824.0
#define LOST -1000
#define PORT_EXPONENT 790
#ifdef MILD
#define EXPONENT 300
#else
#define EXPONENT 700
#endif
#else
#define MESSAGE 1073741824.0f
#define WIDE 1.329228e36f
#define LEAST 1e-26f
#define FAINT 1e-36f
#define CERTAIN_EXPONENT 8388608.0f
#define LOST -120
#define PORT_EXPONENT 118
#ifdef MILD
#define EXPONENT 40
#else
#define EXPONENT 90
#endif
#endif
// How many messages multiply without leaving the range of the type.
#ifdef MILD
#define SAFE 8
#else
#define SAFE 4
#endif

struct Network {
    const uint4 *edges;
    const REAL *weights;
    const int *node_label, *slot_base, *degree, *port_start;
    // One-of groups: states of all groups one after another.
    const int *state_label, *group_start;
    // The entries of links (state and link), link after link; and the entries of each state.
    const int2 *entries;
    const REAL *entry_weights;
    const int *link_start, *link_port, *link_group, *state_entries_start, *state_entries;
    // Parts are states of a group that are one member of a cardinality factor; and the parts of each state.
    const int *part_start, *part_states, *part_group, *state_parts_start, *state_parts;
    // Members of cardinality factors: p is port p, -1 - p is part p.
    const int *factor_start, *members;
    // The weights of counts: k + 1 for a factor of k members. Factors come in order of size: up to 7, 15 and 31 members, then
    // the others.
    const double *factor_cost, *factor_weight, *bias;
    // Who sends the messages of a node: its first four, and the others by fours; where a node's others start, and how many
    // messages it has; the strengths of pairs. See echo.cu.
    const uint2 *heads, *tails;
    const int2 *reach;
    float strengths[4];
    int edge_count, nodes, slots, ports, states, groups, entry_count, links, parts, factors, labels, largest, tail_count,
        small_factors[3];
    double constant;
};

struct Course {
    int iterations, stride;
    // The shares of the old and the new message in a damped one.
    REAL old_part, new_part;
    double tolerance, drift;
    // Whether a row may stop before all iterations are done.
    int may_stop;
};

// One number per row. Passed by value: the compiler keeps in memory what a function has the address of.
struct Sums {
    double v[ROWS];
};

// The arrays of a block that are not in shared memory.
struct Memory {
    Vec *belief, *slots;
    Vec *own, *own_exponent, *incoming, *cavity, *entry, *state_own, *state_own_exponent, *state_exponent, *state_weight,
        *state_belief, *part_in, *part_cavity;
    // ROWS numbers per group.
    double *group_total, *group_exponent;
    // Room for the counts of a cardinality factor, for each warp.
    double *counts;
};

// Named directly: through a pointer in a structure the compiler would not see that they are in shared memory.
#ifdef SHARED
extern __shared__ __align__(16) double shared_memory[];
#define BELIEF reinterpret_cast<Vec *>(shared_memory)
#define SLOTS (reinterpret_cast<Vec *>(shared_memory) + n.nodes)
#else
#define BELIEF memory.belief
#define SLOTS memory.slots
#endif
// Messages of labels from and to larger factors.
#ifdef SHARED_PORTS
#define INCOMING (SLOTS + n.slots)
#define CAVITY (SLOTS + n.slots + n.ports)
#else
#define INCOMING memory.incoming
#define CAVITY memory.cavity
#endif

__device__ __forceinline__ REAL within(REAL x, REAL limit) {
    x = x < limit ? x : limit;
    return x > 1 / limit ? x : 1 / limit;
}

// Mantissa in [1, 2) and exponent of a positive number.
__device__ __forceinline__ float split(float x, int &exponent) {
    u32 bits = __float_as_uint(x);
    exponent += int(bits >> 23) - 127;
    return __uint_as_float((bits & 0x007fffffu) | 0x3f800000u);
}

__device__ __forceinline__ double split(double x, int &exponent) {
    u64 bits = u64(__double_as_longlong(x));
    exponent += int(bits >> 52) - 1023;
    return __longlong_as_double((long long)((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull));
}

__device__ __forceinline__ float two_to(int exponent, float) { return __uint_as_float(u32(exponent + 127) << 23); }
__device__ __forceinline__ double two_to(int exponent, double) {
    return __longlong_as_double((long long)(u64(exponent + 1023) << 52));
}
__device__ __forceinline__ float inverse(float x) { return __frcp_rn(x); }
__device__ __forceinline__ double inverse(double x) { return 1 / x; }
// For messages: one instruction, good to a few last digits.
__device__ __forceinline__ float quick_inverse(float x) {
#ifdef __CUDACC_RTC__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1 / x;
#endif
}
__device__ __forceinline__ double quick_inverse(double x) { return 1 / x; }
// The same with all digits but the last, for numbers that are far from the ends of the range.
__device__ __forceinline__ float near_inverse(float x) {
    float y = quick_inverse(x);
    return y * (2 - x * y);
}
__device__ __forceinline__ double near_inverse(double x) { return 1 / x; }

// e to any power as mantissa and exponent; infinite powers outweigh everything.
__device__ __forceinline__ void scaled_exp(double log, REAL &mantissa, REAL &exponent) {
    double bits = log * 1.4426950408889634074;
    bits = bits < double(CERTAIN_EXPONENT) ? bits : double(CERTAIN_EXPONENT);
    bits = bits > -double(CERTAIN_EXPONENT) ? bits : -double(CERTAIN_EXPONENT);
    double down = floor(bits);
#ifdef DOUBLE
    mantissa = exp2(bits - down);
#else
    mantissa = exp2f(float(bits - down));
#endif
    exponent = REAL(down);
}

// The largest change of beliefs of each row: of a probability, and of odds in proportion.
struct Watch {
    REAL change[ROWS], drift[ROWS];
};

// The belief of a node from all its messages, as mantissa and exponent.
__device__ __forceinline__ void hear(const Network &n, const Memory &memory, int node, REAL (&mantissa)[ROWS],
                                     int (&exponent)[ROWS]) {
    Vec own = memory.own[node], own_exponent = memory.own_exponent[node];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        mantissa[r] = own.v[r];
        exponent[r] = int(own_exponent.v[r]);
    }
    const Vec *slot = SLOTS + n.slot_base[node >> 3] + (node & 7);
    int degree = n.degree[node >> 3];
    for (int from = 0; from < degree; from += SAFE) {
        int to = min(degree - from, SAFE);
#pragma unroll
        for (int j = 0; j < SAFE; j++) {
            if (j >= to) break;
            Vec message = slot[(from + j) * 8];
#pragma unroll
            for (int r = 0; r < ROWS; r++) mantissa[r] *= message.v[r];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) mantissa[r] = split(mantissa[r], exponent[r]);
    }
    if (HAS_PORTS)
        for (int port = n.port_start[node]; port < n.port_start[node + 1]; port++) {
            Vec said = INCOMING[port];
#pragma unroll
            for (int r = 0; r < ROWS; r++) mantissa[r] = split(mantissa[r] * said.v[r], exponent[r]);
        }
}

__device__ __forceinline__ REAL as_odds(REAL mantissa, int exponent, int most = EXPONENT) {
    return mantissa * two_to(max(min(exponent, most), -most), mantissa);
}

// The messages of a node to larger factors. These may outweigh more than a pair does, so the odds are cut off further out.
__device__ __forceinline__ void tell_factors(const Network &n, const Memory &memory, int node, const REAL (&mantissa)[ROWS],
                                             const int (&exponent)[ROWS], int mask) {
    if (!HAS_PORTS) return;
    REAL odds[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) odds[r] = as_odds(mantissa[r], exponent[r], PORT_EXPONENT);
    for (int port = n.port_start[node]; port < n.port_start[node + 1]; port++) {
        Vec said = INCOMING[port], cavity = CAVITY[port];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (mask >> r & 1) cavity.v[r] = within(odds[r] / said.v[r], WIDE);
        CAVITY[port] = cavity;
    }
}

__device__ __forceinline__ void watch_change(Watch &watch, int r, REAL before, REAL now) {
    REAL difference = absolute(now - before);
    REAL probability = difference * quick_inverse((1 + now) * (1 + before));
    // Further out, odds are cut off, and need not agree.
    REAL proportion = now > LEAST && now * LEAST < 1 ? difference * quick_inverse(now + before) : REAL(0);
    watch.change[r] = larger(watch.change[r], probability);
    watch.drift[r] = larger(watch.drift[r], proportion);
}

// Updates all beliefs.
__device__ __forceinline__ void visit_nodes(const Network &n, const Memory &memory, Watch *watch) {
    for (int node = threadIdx.x; node < n.nodes; node += blockDim.x) {
        REAL mantissa[ROWS];
        int exponent[ROWS];
        hear(n, memory, node, mantissa, exponent);
        Vec before;
        if (watch) before = BELIEF[node];
        Vec belief;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            belief.v[r] = as_odds(mantissa[r], exponent[r]);
            if (watch) watch_change(*watch, r, before.v[r], belief.v[r]);
        }
        BELIEF[node] = belief;
        tell_factors(n, memory, node, mantissa, exponent, ~0);
    }
}

// Mixes the new message above / below with the old one, as probabilities, where messages are damped.
template <class T> __device__ __forceinline__ void mix(const Course &course, T before, T &above, T &below) {
#ifdef DAMPED
    T fresh = course.new_part * (1 + before), kept = course.old_part * (above + below);
    above = fresh * above + kept * before;
    below = fresh * below + kept;
#endif
}

// The same, unless both messages are as good as certain: then there is nothing to mix, and odds would only lag behind.
template <class T> __device__ __forceinline__ void damp(const Course &course, T before, T &above, T &below) {
#ifdef DAMPED
    const T faded = T(sizeof(T) == 8 ? 1e-12 : 1e-7);
    bool faint = above < faded * below && before < faded;
    bool sure = below < faded * above && before * faded > 1;
    if (!(faint || sure)) mix(course, before, above, below);
#endif
}

// A message from a larger factor.
__device__ __forceinline__ REAL wide_odds(double odds) {
    return REAL(fmin(fmax(odds, 1.0 / double(WIDE)), double(WIDE)));
}

#ifdef MILD
// Both messages over a symmetric pair.
__device__ __forceinline__ void mild_messages(const Course &course, REAL t, REAL a, REAL b, REAL &to_a, REAL &to_b) {
    REAL above_b = t * to_a + a, below_b = to_a + t * a, above_a = t * to_b + b, below_a = to_b + t * b;
    mix(course, to_b, above_b, below_b);
    mix(course, to_a, above_a, below_a);
    REAL share = quick_inverse(below_a * below_b);
    to_a = above_a * below_b * share;
    to_b = above_b * below_a * share;
}
#endif

// Updates all messages over pairs.
__device__ __forceinline__ void visit_edges(const Network &n, const Memory &memory, const Course &course) {
#pragma unroll 2
    for (int at = threadIdx.x; at < n.edge_count; at += blockDim.x) {
        uint4 edge = n.edges[at];
#ifdef MILD
        REAL t = n.weights[at];
#else
        REAL w00 = n.weights[4 * at], w01 = n.weights[4 * at + 1];
        REAL w10 = n.weights[4 * at + 2], w11 = n.weights[4 * at + 3];
#endif
        if (edge.x == 0xffffffffu) continue;
        Vec a = BELIEF[edge.x], b = BELIEF[edge.y];
        Vec to_a = SLOTS[edge.z], to_b = SLOTS[edge.w];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#ifdef MILD
            mild_messages(course, t, a.v[r], b.v[r], to_a.v[r], to_b.v[r]);
#else
            REAL at_a = to_a.v[r], at_b = to_b.v[r];
            REAL above_b = w01 * at_a + w11 * a.v[r], below_b = w00 * at_a + w10 * a.v[r];
            REAL above_a = w10 * at_b + w11 * b.v[r], below_a = w00 * at_b + w01 * b.v[r];
            damp(course, at_b, above_b, below_b);
            damp(course, at_a, above_a, below_a);
            to_a.v[r] = within(above_a / below_a, MESSAGE);
            to_b.v[r] = within(above_b / below_b, MESSAGE);
#endif
        }
        SLOTS[edge.z] = to_a;
        SLOTS[edge.w] = to_b;
    }
}
