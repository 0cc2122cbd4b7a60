// Rows in and out of `family`: from scores to weights, and from marginals back to rows. Scores are read once and marginals
// written once, 32 consecutive numbers at a time, transposed between rows and lanes in shared memory.

// Labels per tile. A tile is transposed in the warp's own part of shared memory. Each label takes one number more than there
// are rows, so that lanes use different banks.
#define TILE 32
#define TURNED (BLOCK_ROWS + 1)
// In a label's second slot: it is in a one-of group. In its first: its group does not allow it to be off; or it is a folded
// leaf, and the slot says where the messages of its set are.
#define GROUPED 0x40000000
#define NEVER_OFF 0x40000000
#define MEMBER 0x20000000

// The score of a label that evidence says is off, in a one-of group.
#define NEVER REAL(-SCORE_LIMIT)

// Rows with a bad score (a bit each), and whether a weight was cut off: see Row.
struct Loaded {
    int bad, suspect;
};

// The rows of a block: their indices or -1, their scores, and the codes of their evidence or null.
struct BlockInput {
    const SCORE *scores[BLOCK_ROWS];
    const i8 *codes[BLOCK_ROWS];
    int row[BLOCK_ROWS];
};

// Writes the weights of labels outside groups to their slots. For labels in groups, writes the score with its bias to the slot
// of the weight on.
__device__ void load_tile(const Forest &f, const Memory &memory, const BlockInput &input, int tile, int lane, REAL *near,
                          Loaded &loaded) {
    int label = tile * TILE + lane;
    REAL bias = label < f.labels ? f.bias[label] : REAL(0);
    // Of this lane's label; other lanes get them from here.
    int2 own = label < f.labels ? __ldg(f.slots + label) : make_int2(0, 0);
    if (label < f.labels && __ldg(f.grouped + label)) own.y |= GROUPED;
    i8 *codes = reinterpret_cast<i8 *>(near + TILE * TURNED);
    // `near` is not advanced by the lane here: rows go in, labels come out. Several rows are read before any is used.
    constexpr int AT_ONCE = BLOCK_ROWS < 8 ? BLOCK_ROWS : 8;
    int usable = label < f.labels ? label : 0;
    for (int from = 0; from < BLOCK_ROWS; from += AT_ONCE) {
        SCORE scores[AT_ONCE];
        int evidence[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) scores[i] = __ldg(input.scores[from + i] + usable);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            evidence[i] = evidence_at(input.codes[from + i], input.row[from + i], f.labels, usable);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int r = from + i;
            bool there = input.row[r] >= 0 && label < f.labels, valid = is_valid(scores[i], evidence[i]);
            if (there && !valid) loaded.bad |= 1 << r;
            near[lane * TURNED + r] = there ? (valid ? REAL(scores[i]) : REAL(0)) + bias : REAL(0);
            codes[lane * BLOCK_ROWS + r] = i8(there ? evidence[i] : UNKNOWN);
        }
    }
    __syncwarp();
    double offset = 0;
#pragma unroll 4
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        REAL theta = near[i * TURNED + row_of_lane(lane)];
        int evidence = codes[i * BLOCK_ROWS + row_of_lane(lane)];
        int2 slot = make_int2(__shfl_sync(ALL_LANES, own.x, i), __shfl_sync(ALL_LANES, own.y, i));
        if (tile * TILE + i >= f.labels) continue;
        bool never_off = slot.x & NEVER_OFF;
        slot.x &= ~NEVER_OFF;
        if (slot.y & GROUPED) {
            slot.y &= ~GROUPED;
            AT(memory.numbers, slot.y) = is_off(evidence) ? NEVER : theta;
            if (MAX_LAYERS > 1 && slot.x & MEMBER) {
                if (is_on(evidence)) require(memory, slot.x & ~MEMBER, slot.y);
                continue;
            }
            // The slot of the weight off keeps the evidence until the group is weighed.
            AT(memory.numbers, slot.x) = is_on(evidence) || never_off ? REAL(0) : REAL(1);
            continue;
        }
        REAL size = absolute(theta);
        if (!(size <= LIMIT)) loaded.suspect |= 2;
        REAL small = exponential(-(size < LIMIT ? size : REAL(LIMIT)));
        REAL off = theta > 0 ? small : REAL(1), on = theta > 0 ? REAL(1) : small;
        offset += theta > 0 ? double(theta) : 0.0;
        AT(memory.numbers, slot.x) = is_on(evidence) || never_off ? REAL(0) : off;
        AT(memory.numbers, slot.y) = is_off(evidence) ? REAL(0) : on;
    }
    // The sums of the groups of lanes, in the same order in every warp.
    for (int step = BLOCK_ROWS; step < LANES; step *= 2) offset += __shfl_xor_sync(ALL_LANES, offset, step);
    if (lane < BLOCK_ROWS) AT(memory.offsets, tile) = offset;
    __syncwarp();
}

// The weights of one-of groups: e^theta over their sum. In three steps, each over chunks with a fixed order of sums, so that
// answers do not depend on the number of warps.
__device__ void largest_of_chunk(const Forest &f, const Memory &memory, int chunk) {
    Chunk c = f.chunks[chunk];
    REAL most = NEVER;
    for (int i = c.from; i < c.to; i++) most = larger(most, AT(memory.numbers, __ldg(f.group_places + i)));
    AT(memory.partial, chunk) = most;
}

__device__ REAL largest_of_group(const Forest &f, const Memory &memory, int group) {
    REAL most = NEVER;
    for (int c = f.group_chunks[group]; c < f.group_chunks[group + 1]; c++)
        most = larger(most, AT(memory.partial, c));
    return most;
}

__device__ void weigh_chunk(const Forest &f, const Memory &memory, int chunk, Loaded &loaded) {
    Chunk c = f.chunks[chunk];
    REAL most = largest_of_group(f, memory, c.group), sum = 0;
    for (int i = c.from; i < c.to; i++) {
        REAL &place = AT(memory.numbers, __ldg(f.group_places + i)), theta = place;
        REAL below = most - theta, weight = 0;
        if (theta != NEVER) {
            if (!(below <= LIMIT)) loaded.suspect |= 2;
            weight = exponential(-(below < LIMIT ? below : REAL(LIMIT)));
        }
        sum += weight;
        place = weight;
    }
    AT(memory.partial, f.chunk_count + chunk) = sum;
}

__device__ REAL sum_of_group(const Forest &f, const Memory &memory, int group) {
    REAL sum = 0;
    for (int c = f.group_chunks[group]; c < f.group_chunks[group + 1]; c++)
        sum += AT(memory.partial, f.chunk_count + c);
    return sum;
}

__device__ void place_chunk(const Forest &f, const Memory &memory, int chunk) {
    Chunk c = f.chunks[chunk];
    REAL inverse = 1 / sum_of_group(f, memory, c.group);
    for (int i = c.from; i < c.to; i++) AT(memory.numbers, __ldg(f.group_places + i)) *= inverse;
}

// Marginals from lanes to rows.
__device__ void store_tile(const Forest &f, const Memory &memory, const Rows &rows, const int *row_of, const int *status,
                           int tile, int lane, REAL *near) {
    int label = tile * TILE + lane;
    int2 slots = label < f.labels ? __ldg(f.slots + label) : make_int2(0, 0);
    int own = MAX_LAYERS > 1 && slots.x & MEMBER ? slots.y : slots.x & ~NEVER_OFF;
#pragma unroll 8
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        int row = row_of_lane(lane), place = __shfl_sync(ALL_LANES, own, i);
        if (tile * TILE + i < f.labels) near[i * TURNED + row] = status[row] ? REAL(QUIET_NAN) : AT(memory.numbers, place);
    }
    __syncwarp();
    if (label < f.labels)
        for (int r = 0; r < BLOCK_ROWS; r++)
            if (row_of[r] >= 0) store_marginal(rows, row_of[r], f.labels, label, SCORE(near[lane * TURNED + r]));
    __syncwarp();
}
