// Leaves of a one-of group that were folded into one child, or into their parent: see src/family/fold.rs.
//
//   off 1, on S = sum of w        or, with the parent's own weights:        w0, w0 f S; w1, w1 S
//
// Each leaf has one number: its score, then its weight on, then its marginal. The second message of a set counts the leaves
// that evidence says are on, and the last message says where the number of one of them is.

// Models without an open group have no sets, and their kernels no code for them.
#define SETS (MAX_LAYERS > 1 ? f.set_count : 0)

__device__ __forceinline__ void clear_set(const Forest &f, const Memory &memory, int set) {
    AT(memory.numbers, __ldg(f.sets + set).x + 1) = 0;
}

// The evidence of a leaf is on; its number is at `place`.
__device__ __forceinline__ void require(const Memory &memory, int message, int place) {
    atomicAdd(&AT(memory.numbers, message + 1), REAL(1));
    AT(memory.numbers, message + 3) = REAL(place);
}

// The messages of what the leaves were folded into, from their weights.
__device__ void sum_set(const Forest &f, const Memory &memory, int index, Row &row) {
    int4 set = __ldg(f.sets + index);
    REAL *message = &AT(memory.numbers, set.x), sum = 0, required = AT(message, 1);
    int only = required == 1 ? int(AT(message, 3)) : -1;
    for (int i = set.z; i < set.w; i++) {
        int place = __ldg(f.members + i);
        REAL &weight = AT(memory.numbers, place);
        // If one leaf is on, the others have no weight; if two are, none has any.
        if (required > 0 && place != only) weight = 0;
        sum += weight;
    }
    REAL none = required > 0 ? REAL(0) : REAL(1);
    // The sum may be far from 1, and no other message would show it.
    if (required > 0) sum *= power_of_two(sum, row.exponents);
    if (set.y < 0) {
        AT(message, 0) = none;
        AT(message, 1) = 0;
        AT(message, 3) = sum;
        return;
    }
    REAL low = AT(message, 0), high = AT(message, 2), fall = __ldg(f.weights + set.y);
    REAL off = low * fall * sum, on = high * sum;
    REAL scale = power_of_two(larger(larger(low * none, high * none), larger(off, on)), row.exponents);
    AT(message, 0) = low * none * scale;
    AT(message, 1) = off * scale;
    AT(message, 2) = high * none * scale;
    AT(message, 3) = on * scale;
}

// The marginals of the leaves, from that of their set: the child's marginal, or what the parent received.
__device__ void share_set(const Forest &f, const Memory &memory, int index) {
    int4 set = __ldg(f.sets + index);
    REAL sum = 0, all = AT(memory.numbers, set.y < 0 ? set.x : set.x + 1);
    for (int i = set.z; i < set.w; i++) sum += AT(memory.numbers, __ldg(f.members + i));
    for (int i = set.z; i < set.w; i++) {
        // Divides first: the inverse of a small sum may be infinite.
        REAL &place = AT(memory.numbers, __ldg(f.members + i)), p = sum > 0 ? place / sum * all : REAL(0);
        place = p > 1 ? REAL(1) : p;
    }
}
