// Rows in and out of `family`: scores to weights, the two passes, marginals back to rows. Scores are read once and
// marginals written once, 32 consecutive numbers at a time, turned from rows to lanes through shared memory.

// The row of a lane within its block, and which of the warp's groups of lanes it is in.
__device__ __forceinline__ int row_of_lane(int lane) { return GROUPS > 1 ? lane % BLOCK_ROWS : lane; }
__device__ __forceinline__ int group_of_lane(int lane) { return GROUPS > 1 ? lane / BLOCK_ROWS : 0; }

// Labels a tile: a tile is turned in the warp's own part of shared memory.
#define TILE 32

struct Loaded {
    int bad, suspect;
};

// Scores with bias into `values`, weights of labels outside groups into their slots.
__device__ void load_tile(const Forest &f, const Memory &memory, const int *row_of,
                          const SCORE *const *scores_of, const i8 *const *knowns_of, int tile, int lane, REAL *near,
                          Loaded &loaded) {
    int label = tile * TILE + lane;
    REAL bias = label < f.labels ? f.bias[label] : REAL(0);
    i8 *known = reinterpret_cast<i8 *>(near + TILE * 33);
    // `near` of this function is not advanced by the lane: rows go in, labels come out.
#pragma unroll 8
    for (int r = 0; r < BLOCK_ROWS; r++) {
        int row = row_of[r];
        REAL theta = 0;
        i8 evidence = 0;
        if (row >= 0 && label < f.labels) {
            SCORE score = __ldg(scores_of[r] + label);
            if (!is_usable(score)) {
                score = 0;
                loaded.bad |= 1 << r;
            }
            theta = REAL(score) + bias;
            const i8 *told = knowns_of[r];
            if (told) evidence = i8(read_known(told[label]));
            if (evidence > 1) loaded.bad |= 1 << r;
        }
        near[lane * 33 + r] = theta;
        known[lane * LANES + r] = evidence;
    }
    __syncwarp();
    double offset = 0;
#pragma unroll 4
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        if (tile * TILE + i >= f.labels) break;
        int at = tile * TILE + i;
        REAL theta = near[i * 33 + row_of_lane(lane)];
        i8 evidence = known[i * LANES + row_of_lane(lane)];
        int2 slot = __ldg(f.slots + at);
        if (__ldg(f.grouped + at)) {
            // Evidence is kept in the slot of the weight off until the group is weighed.
            AT(memory.values, at) = evidence < 0 ? REAL(-1e30) : theta;
            AT(memory.inside, slot.x) = evidence > 0 ? REAL(0) : REAL(1);
            continue;
        }
        REAL size = absolute(theta);
        if (!(size <= LIMIT)) loaded.suspect |= 2;
        REAL small = exponential(-(size < LIMIT ? size : REAL(LIMIT)));
        REAL off = theta > 0 ? small : REAL(1), on = theta > 0 ? REAL(1) : small;
        offset += theta > 0 ? double(theta) : 0.0;
        AT(memory.inside, slot.x) = evidence > 0 ? REAL(0) : off;
        AT(memory.inside, slot.y) = evidence < 0 ? REAL(0) : on;
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
    for (int i = c.from; i < c.to; i++) most = larger(most, AT(memory.values, __ldg(f.group_labels + i)));
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
        REAL theta = AT(memory.values, __ldg(f.group_labels + i));
        REAL below = most - theta, weight = 0;
        if (theta != REAL(-1e30)) {
            if (!(below <= LIMIT)) loaded.suspect |= 2;
            weight = exponential(-(below < LIMIT ? below : REAL(LIMIT)));
        }
        sum += weight;
        AT(memory.values, __ldg(f.group_labels + i)) = weight;
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
    for (int i = c.from; i < c.to; i++) {
        int label = __ldg(f.group_labels + i);
        AT(memory.inside, __ldg(f.slots + label).y) = AT(memory.values, label) * inverse;
    }
}

// Marginals from lanes to rows.
__device__ void store_tile(const Forest &f, const Memory &memory, const Rows &rows, const int *row_of,
                           const int *status, int tile, int lane, REAL *near) {
#pragma unroll 8
    for (int i = group_of_lane(lane); i < TILE; i += GROUPS) {
        int at = tile * TILE + i, row = row_of_lane(lane);
        if (at < f.labels) near[i * 33 + row] = status[row] ? REAL(QUIET_NAN) : AT(memory.values, at);
    }
    __syncwarp();
    int label = tile * TILE + lane;
    if (label < f.labels)
        for (int r = 0; r < BLOCK_ROWS; r++)
            if (row_of[r] >= 0) rows.marginals[u64(row_of[r]) * f.labels + label] = SCORE(near[lane * 33 + r]);
    __syncwarp();
}

// Entries of a schedule: a parent, or NONE, and above bit 28 the mode of its round.
#define NONE 0x0fffffff

// The parents of a level that a warp has, GROUPS at a time. In rounds by eight, the eights have their turns.
template <bool INSIDE>
__device__ __forceinline__ void visit_level(const Forest &f, Memory &memory, const int *order, int from, int to, Row &row) {
    int group = group_of_lane(memory.lane);
    int next = from < to ? __ldg(order + from * GROUPS + group) : 0;
    for (int at = from; at < to; at++) {
        int now = next & NONE, parts = 1;
        if (GROUPS > 1) {
            memory.mode = next >> 28;
            parts = memory.mode == BY_EIGHT ? 4 : 1;
        }
        const Parent p = fetch(f.parents, GROUPS > 1 && now == NONE ? 0 : now);
        next = __ldg(order + (at + 1 < to ? at + 1 : at) * GROUPS + group);
        if (GROUPS == 1 || (next & NONE) != NONE) bring(f.parents + (next & NONE));
        for (int part = 0; part < parts; part++) {
            bool turn = GROUPS == 1 || (now != NONE && (parts == 1 || memory.lane / 8 == part));
            if (turn && INSIDE) inside_any(f, memory, p, row);
            if (turn && !INSIDE) outside_any(f, memory, p, row);
            if (GROUPS > 1) __syncwarp();
        }
    }
}

// Arrays of the block in global memory, one after another.
__device__ __forceinline__ Memory memory_of(const Forest &f, REAL *scratch, REAL *near, int lines, int tiles) {
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    REAL *block = scratch + u64(blockIdx.x) * f.block_numbers, *numbers = block + row_of_lane(lane);
    Memory memory;
    memory.offsets = reinterpret_cast<double *>(block) + row_of_lane(lane);
    numbers += 2 * tiles * BLOCK_ROWS;
    memory.inside = numbers, numbers += f.messages * BLOCK_ROWS;
    memory.outside = numbers, numbers += f.outside * BLOCK_ROWS;
    memory.totals = numbers, numbers += f.totals * BLOCK_ROWS;
    memory.shares = numbers, numbers += f.totals * BLOCK_ROWS;
    memory.scales = numbers, numbers += 2 * f.unit_count * BLOCK_ROWS;
    memory.values = numbers, numbers += f.labels * BLOCK_ROWS;
    memory.partial = numbers, numbers += 2 * f.chunk_count * BLOCK_ROWS;
    memory.far = numbers - row_of_lane(lane) + u64(warp) * f.wide_region * LANES + lane;
    memory.near = near + lane;
    memory.lines = lines;
    memory.lane = lane;
    memory.mode = NEAR;
    memory.stride = LANES;
    return memory;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    family(const __grid_constant__ Forest f, const __grid_constant__ Rows rows, REAL *scratch) {
    extern __shared__ double shared_memory[];
    __shared__ const SCORE *scores_of[BLOCK_ROWS];
    __shared__ const i8 *knowns_of[BLOCK_ROWS];
    __shared__ int row_of[BLOCK_ROWS], exponents[BLOCK_ROWS], suspect[BLOCK_ROWS], bad[BLOCK_ROWS], status[BLOCK_ROWS];
    int warps = blockDim.x / LANES, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    // Which of the block's groups of lanes this is, and its row; of a block's first lanes, one a row.
    int group = warp * GROUPS + group_of_lane(lane), groups = warps * GROUPS, mine = row_of_lane(lane);
    bool speaks = threadIdx.x < BLOCK_ROWS;
    int to_do = rows_to_do(rows), tiles = (f.labels + TILE - 1) / TILE;
    int2 region = f.regions[warp];
    REAL *near = reinterpret_cast<REAL *>(shared_memory) + region.x * LANES;
    Memory memory = memory_of(f, scratch, near, region.y, tiles);
    if (blockIdx.x * BLOCK_ROWS >= to_do) return;
    // Layers that a leaf does not have are 0, and nothing writes them.
    for (int i = group; i < f.messages; i += groups) AT(memory.inside, i) = 0;
    for (int first = blockIdx.x * BLOCK_ROWS; first < to_do; first += gridDim.x * BLOCK_ROWS) {
        __syncthreads();
        if (speaks) {
            row_of[mine] = first + mine < to_do ? row_at(rows, first + mine) : -1;
            scores_of[mine] = rows.scores + u64(max(row_of[mine], 0) % rows.scored) * f.labels;
            knowns_of[mine] = known_of(rows, max(row_of[mine], 0), f.labels);
            exponents[mine] = suspect[mine] = bad[mine] = 0;
        }
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
        Row row = {0, loaded.suspect};
        for (int level = 0; level < f.up_count; level++) {
            const int *levels = f.up_levels + level * warps + warp;
            visit_level<true>(f, memory, f.up, __ldg(levels), __ldg(levels + 1), row);
            __syncthreads();
        }
        for (int level = 0; level < f.down_count; level++) {
            const int *levels = f.down_levels + level * warps + warp;
            visit_level<false>(f, memory, f.down, __ldg(levels), __ldg(levels + 1), row);
            __syncthreads();
        }
        atomicAdd(&exponents[mine], row.exponents);
        atomicOr(&suspect[mine], row.suspect);
        __syncthreads();
        if (speaks && row_of[mine] >= 0) {
            double offset = f.constant;
            for (int tile = 0; tile < tiles; tile++) offset += AT(memory.offsets, tile);
            for (int g = 0; g < f.groups; g++)
                offset += double(largest_of_group(f, memory, g)) + log(double(sum_of_group(f, memory, g)));
            double value = AT(memory.inside, f.root + 1);
            int what = ANSWERED;
            double log_partition = log(value) + exponents[mine] * LN_2 + offset;
            if (bad[mine]) {
                what = BAD_SCORE;
                log_partition = QUIET_NAN;
            } else if (suspect[mine] & 2) {
                what = OUT_OF_RANGE;
            } else if (suspect[mine]) {
                what = value == 0 ? IMPOSSIBLE : OUT_OF_RANGE;
                if (value == 0) log_partition = MINUS_INFINITY;
            }
            if (rows.again && (what == OUT_OF_RANGE || what == IMPOSSIBLE))
                rows.again[1 + atomicAdd(rows.again, 1)] = row_of[mine];
            status[mine] = what;
            rows.log_partition[row_of[mine]] = what == OUT_OF_RANGE ? QUIET_NAN : log_partition;
            rows.status[row_of[mine]] = what;
        }
        __syncthreads();
        for (int tile = warp; tile < tiles; tile += warps)
            store_tile(f, memory, rows, row_of, status, tile, lane, near);
    }
}
