// Rows in and out of `family`: scores to weights, the two passes, marginals back to rows. Scores are read once and
// marginals written once, 32 consecutive numbers at a time, turned from rows to lanes through shared memory.

// Labels a tile: a tile is turned in the warp's own part of shared memory. One number more a label than there are rows, so
// that lanes meet different banks.
#define TILE 32
#define TURNED (BLOCK_ROWS + 1)
// Of a label's second slot: it is in a one-of group. Of its first: no group lets it be off; it is a leaf that was folded, and
// this is where the messages of its set are.
#define GROUPED 0x40000000
#define NEVER_OFF 0x40000000
#define MEMBER 0x20000000

struct Loaded {
    int bad, suspect;
};

// Weights of labels outside groups into their slots; of labels in groups, scores with bias into the slot of the weight on.
__device__ void load_tile(const Forest &f, const Memory &memory, const int *row_of,
                          const SCORE *const *scores_of, const i8 *const *knowns_of, int tile, int lane, REAL *near,
                          Loaded &loaded) {
    int label = tile * TILE + lane;
    REAL bias = label < f.labels ? f.bias[label] : REAL(0);
    // Of this lane's label; those that need it get it from here.
    int2 own = label < f.labels ? __ldg(f.slots + label) : make_int2(0, 0);
    if (label < f.labels && __ldg(f.grouped + label)) own.y |= GROUPED;
    i8 *known = reinterpret_cast<i8 *>(near + TILE * TURNED);
    // `near` of this function is not advanced by the lane: rows go in, labels come out.
    // Many at a time, and none waited for before all are on their way.
    constexpr int AT_ONCE = BLOCK_ROWS < 8 ? BLOCK_ROWS : 8;
    int usable = label < f.labels ? label : 0;
    for (int from = 0; from < BLOCK_ROWS; from += AT_ONCE) {
        SCORE scores[AT_ONCE];
        i8 told[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) scores[i] = __ldg(scores_of[from + i] + usable);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) told[i] = knowns_of[from + i] ? knowns_of[from + i][usable] : i8(-1);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int r = from + i, evidence = read_known(told[i]);
            bool there = row_of[r] >= 0 && label < f.labels, good = is_usable(scores[i]);
            if (there && (!good || evidence > 1)) loaded.bad |= 1 << r;
            near[lane * TURNED + r] = there ? (good ? REAL(scores[i]) : REAL(0)) + bias : REAL(0);
            known[lane * BLOCK_ROWS + r] = there ? i8(evidence) : i8(0);
        }
    }
    __syncwarp();
    double offset = 0;
#pragma unroll 4
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        REAL theta = near[i * TURNED + row_of_lane(lane)];
        i8 evidence = known[i * BLOCK_ROWS + row_of_lane(lane)];
        int2 slot = make_int2(__shfl_sync(0xffffffffu, own.x, i), __shfl_sync(0xffffffffu, own.y, i));
        if (tile * TILE + i >= f.labels) continue;
        bool never_off = slot.x & NEVER_OFF;
        slot.x &= ~NEVER_OFF;
        if (slot.y & GROUPED) {
            slot.y &= ~GROUPED;
            AT(memory.numbers, slot.y) = evidence < 0 ? REAL(-1e30) : theta;
            if (MAX_LAYERS > 1 && slot.x & MEMBER) {
                if (evidence > 0) require(memory, slot.x & ~MEMBER, slot.y);
                continue;
            }
            // Evidence is kept in the slot of the weight off until the group is weighed.
            AT(memory.numbers, slot.x) = evidence > 0 || never_off ? REAL(0) : REAL(1);
            continue;
        }
        REAL size = absolute(theta);
        if (!(size <= LIMIT)) loaded.suspect |= 2;
        REAL small = exponential(-(size < LIMIT ? size : REAL(LIMIT)));
        REAL off = theta > 0 ? small : REAL(1), on = theta > 0 ? REAL(1) : small;
        offset += theta > 0 ? double(theta) : 0.0;
        AT(memory.numbers, slot.x) = evidence > 0 || never_off ? REAL(0) : off;
        AT(memory.numbers, slot.y) = evidence < 0 ? REAL(0) : on;
    }
    // The groups' sums in one order, whatever the warp.
    for (int step = BLOCK_ROWS; step < LANES; step *= 2) offset += __shfl_xor_sync(0xffffffffu, offset, step);
    if (lane < BLOCK_ROWS) AT(memory.offsets, tile) = offset;
    __syncwarp();
}

// Weights of one-of groups: e^theta over their sum. In three steps, each over chunks with a fixed order of sums, so
// that answers do not depend on the number of warps.
__device__ void largest_of_chunk(const Forest &f, const Memory &memory, int chunk) {
    Chunk c = f.chunks[chunk];
    REAL most = REAL(-1e30);
    for (int i = c.from; i < c.to; i++) most = larger(most, AT(memory.numbers, __ldg(f.group_places + i)));
    AT(memory.partial, chunk) = most;
}

__device__ REAL largest_of_group(const Forest &f, const Memory &memory, int group) {
    REAL most = REAL(-1e30);
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
        if (theta != REAL(-1e30)) {
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
__device__ void store_tile(const Forest &f, const Memory &memory, const Rows &rows, const int *row_of,
                           const int *status, int tile, int lane, REAL *near) {
    int label = tile * TILE + lane;
    int2 slots = label < f.labels ? __ldg(f.slots + label) : make_int2(0, 0);
    int own = MAX_LAYERS > 1 && slots.x & MEMBER ? slots.y : slots.x & ~NEVER_OFF;
#pragma unroll 8
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        int row = row_of_lane(lane), place = __shfl_sync(0xffffffffu, own, i);
        if (tile * TILE + i < f.labels) near[i * TURNED + row] = status[row] ? REAL(QUIET_NAN) : AT(memory.numbers, place);
    }
    __syncwarp();
    if (label < f.labels)
        for (int r = 0; r < BLOCK_ROWS; r++)
            if (row_of[r] >= 0) rows.marginals[u64(row_of[r]) * f.labels + label] = SCORE(near[lane * TURNED + r]);
    __syncwarp();
}

// The rounds of a warp on the way up or down. What the next round reads of the tables is on its way while this one waits
// and works.
template <bool INSIDE>
__device__ __forceinline__ void visit(const Forest &f, Memory &memory, int from, int to, volatile int *progress, Row &row) {
    const int2 *rounds = f.rounds + group_of_lane(memory.lane);
    auto entry = [&](int at) { return __ldg(rounds + (at < to ? at : to - 1) * GROUPS); };
    auto parent = [&](int2 some) { return fetch(f.parents, (some.x & NONE) == NONE ? 0 : some.x & NONE); };
    int warp = threadIdx.x / LANES, other = memory.lane % MOST_WARPS;
    auto awaited = [&](int at) { return int(__ldg(f.awaited + (at < to ? at : to - 1) * MOST_WARPS + other)); };
    if (from >= to) return;
    int2 next = entry(from), after = entry(from + 1);
    int next_count = awaited(from);
    Parent coming = parent(next);
    for (int at = from; at < to; at++) {
        const Parent p = coming;
        bool works = (next.x & NONE) != NONE;
        int count = next_count;
        memory.alone = next.x & ALONE;
        memory.cells = next.y;
        next = after;
        after = entry(at + 2);
        next_count = awaited(at + 1);
        coming = parent(next);
        if (next.x & ALONE) bring(f.units + coming.units_from);
        else bring(f.children + next.y);
        // Who waits leaves the instructions to those that work.
        while (__any_sync(0xffffffffu, progress[other] < count)) __nanosleep(200);
        __threadfence_block();
        __syncwarp();
        if (works && INSIDE) inside_any(f, memory, p, row);
        if (works && !INSIDE) outside_any(f, memory, p, row);
        __syncwarp();
        __threadfence_block();
        if (memory.lane == 0) progress[warp] = progress[warp] + 1;
    }
}

// Arrays of the block, one after another: in shared memory if RESIDENT, before those of the warps.
__device__ __forceinline__ Memory memory_of(const Forest &f, REAL *scratch, REAL *shared, int2 region, int tiles) {
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    REAL *global = scratch + u64(blockIdx.x) * f.block_numbers, *block = RESIDENT ? shared : global;
    REAL *numbers = block + row_of_lane(lane);
    Memory memory;
    memory.offsets = reinterpret_cast<double *>(block) + row_of_lane(lane);
    numbers += 2 * tiles * BLOCK_ROWS;
    memory.numbers = numbers, numbers += f.messages * BLOCK_ROWS;
    memory.totals = numbers, numbers += f.totals * BLOCK_ROWS;
    memory.shares = numbers, numbers += f.totals * BLOCK_ROWS;
    memory.scales = numbers, numbers += f.scales * BLOCK_ROWS;
    memory.partial = numbers, numbers += 2 * f.chunk_count * BLOCK_ROWS;
    memory.far = (RESIDENT ? global : numbers - row_of_lane(lane)) + u64(warp) * f.wide_region * LANES + lane;
    memory.near = shared + region.x * LANES + lane;
    memory.shared = shared;
    memory.cells = 0;
    memory.lines = region.y;
    memory.lane = lane;
    memory.alone = false;
    memory.stride = LANES;
    return memory;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    family(const __grid_constant__ Forest f, const __grid_constant__ Rows rows, REAL *scratch) {
    extern __shared__ __align__(16) double shared_memory[];
    __shared__ const SCORE *scores_of[BLOCK_ROWS];
    __shared__ const i8 *knowns_of[BLOCK_ROWS];
    __shared__ int row_of[BLOCK_ROWS], exponents[BLOCK_ROWS], suspect[BLOCK_ROWS], bad[BLOCK_ROWS], status[BLOCK_ROWS];
    // Rounds that each warp has done.
    __shared__ volatile int progress[MOST_WARPS];
    int warps = blockDim.x / LANES, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    // Which of the block's groups of lanes this is, and its row; of a block's first lanes, one a row.
    int group = warp * GROUPS + group_of_lane(lane), groups = warps * GROUPS, mine = row_of_lane(lane);
    bool speaks = threadIdx.x < BLOCK_ROWS;
    int to_do = rows_to_do(rows), tiles = (f.labels + TILE - 1) / TILE;
    int2 region = f.regions[warp];
    Memory memory = memory_of(f, scratch, reinterpret_cast<REAL *>(shared_memory), region, tiles);
    REAL *near = memory.near - lane;
    if (blockIdx.x * BLOCK_ROWS >= to_do) return;
    // Layers that a leaf does not have are 0, and nothing writes them.
    for (int i = group; i < f.messages; i += groups) AT(memory.numbers, i) = 0;
    for (int first = blockIdx.x * BLOCK_ROWS; first < to_do; first += gridDim.x * BLOCK_ROWS) {
        __syncthreads();
        if (speaks) {
            row_of[mine] = first + mine < to_do ? row_at(rows, first + mine) : -1;
            scores_of[mine] = rows.scores + u64(max(row_of[mine], 0) % rows.scored) * f.labels;
            knowns_of[mine] = known_of(rows, max(row_of[mine], 0), f.labels);
            exponents[mine] = suspect[mine] = bad[mine] = 0;
        }
        if (threadIdx.x < MOST_WARPS) progress[threadIdx.x] = 0;
        for (int set = group; set < SETS; set += groups) clear_set(f, memory, set);
        __syncthreads();
        Loaded loaded = {0, 0};
        for (int tile = warp; tile < tiles; tile += warps)
            load_tile(f, memory, row_of, scores_of, knowns_of, tile, lane, near, loaded);
        for (int r = 0; r < BLOCK_ROWS; r++)
            if (loaded.bad >> r & 1) atomicOr(&bad[r], 1);
        __syncthreads();
        if (f.chunk_count) {
            for (int c = group; c < f.chunk_count; c += groups) largest_of_chunk(f, memory, c);
            __syncthreads();
            for (int c = group; c < f.chunk_count; c += groups) weigh_chunk(f, memory, c, loaded);
            __syncthreads();
            for (int c = group; c < f.chunk_count; c += groups) place_chunk(f, memory, c);
            __syncthreads();
        }
        // The scores of the next rows come nearer meanwhile.
        int ahead = first + gridDim.x * BLOCK_ROWS + lane;
        if (!rows.listed && lane < BLOCK_ROWS && ahead < to_do) {
            const SCORE *scores = rows.scores + u64(ahead % rows.scored) * f.labels;
            for (int at = warp * 128 / sizeof(SCORE); at < f.labels; at += warps * 128 / sizeof(SCORE)) prefetch(scores + at);
        }
        Row row = {0, loaded.suspect};
        if (SETS) {
            for (int set = group; set < SETS; set += groups) sum_set(f, memory, set, row);
            __syncthreads();
        }
        const int *starts = f.starts + 2 * warp;
        visit<true>(f, memory, __ldg(starts), __ldg(starts + 1), progress, row);
        visit<false>(f, memory, __ldg(starts + 1), __ldg(starts + 2), progress, row);
        __syncthreads();
        for (int set = group; set < SETS; set += groups) share_set(f, memory, set);
        atomicAdd(&exponents[mine], row.exponents);
        atomicOr(&suspect[mine], row.suspect);
        __syncthreads();
        int what = ANSWERED;
        if (speaks && row_of[mine] >= 0) {
            if (bad[mine]) what = BAD_SCORE;
            else if (suspect[mine] & 2) what = OUT_OF_RANGE;
            else if (suspect[mine]) what = AT(memory.numbers, f.root + 1) == 0 ? IMPOSSIBLE : OUT_OF_RANGE;
            if (rows.again && (what == OUT_OF_RANGE || what == IMPOSSIBLE))
                rows.again[1 + atomicAdd(rows.again, 1)] = row_of[mine];
            status[mine] = what;
            rows.status[row_of[mine]] = what;
        }
        __syncthreads();
        for (int tile = warp; tile < tiles; tile += warps)
            store_tile(f, memory, rows, row_of, status, tile, lane, near);
        // While other warps write.
        if (speaks && row_of[mine] >= 0) {
            double offset = f.constant;
            for (int tile = 0; tile < tiles; tile++) offset += AT(memory.offsets, tile);
            for (int g = 0; g < f.groups; g++)
                offset += double(largest_of_group(f, memory, g)) + log(double(sum_of_group(f, memory, g)));
            double log_partition = log(double(AT(memory.numbers, f.root + 1))) + exponents[mine] * LN_2 + offset;
            if (what == BAD_SCORE || what == OUT_OF_RANGE) log_partition = QUIET_NAN;
            if (what == IMPOSSIBLE) log_partition = MINUS_INFINITY;
            rows.log_partition[row_of[mine]] = log_partition;
        }
    }
}
