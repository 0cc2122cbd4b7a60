// Rows in and out of `family`: scores to weights, the two passes, marginals back to rows. Scores are read once and
// marginals written once, 32 consecutive numbers at a time, turned from rows to lanes through shared memory.

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
    for (int r = 0; r < LANES; r++) {
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
    for (int i = 0; i < TILE; i++) {
        if (tile * TILE + i >= f.labels) break;
        int at = tile * TILE + i;
        REAL theta = near[i * 33 + lane];
        i8 evidence = known[i * LANES + lane];
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
    AT(memory.offsets, tile) = offset;
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
    for (int i = 0; i < TILE; i++)
        if (tile * TILE + i < f.labels) near[i * 33 + lane] = status[lane] ? REAL(QUIET_NAN) : AT(memory.values, tile * TILE + i);
    __syncwarp();
    int label = tile * TILE + lane;
    if (label < f.labels)
        for (int r = 0; r < LANES; r++)
            if (row_of[r] >= 0) rows.marginals[u64(row_of[r]) * f.labels + label] = SCORE(near[lane * 33 + r]);
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    family(const __grid_constant__ Forest f, const __grid_constant__ Rows rows, REAL *scratch) {
    extern __shared__ double shared_memory[];
    __shared__ const SCORE *scores_of[LANES];
    __shared__ const i8 *knowns_of[LANES];
    __shared__ int row_of[LANES], exponents[LANES], suspect[LANES], bad[LANES], status[LANES];
    int warps = blockDim.x / LANES, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    int to_do = rows_to_do(rows), tiles = (f.labels + TILE - 1) / TILE;
    int2 region = f.regions[warp];
    REAL *near = reinterpret_cast<REAL *>(shared_memory) + region.x * LANES;
    Memory memory;
    REAL *numbers = scratch + u64(blockIdx.x) * f.block_numbers * LANES + lane;
    memory.offsets = reinterpret_cast<double *>(scratch + u64(blockIdx.x) * f.block_numbers * LANES) + lane;
    numbers += 2 * tiles * LANES;
    memory.inside = numbers, numbers += f.messages * LANES;
    memory.outside = numbers, numbers += f.outside * LANES;
    memory.totals = numbers, numbers += f.totals * LANES;
    memory.shares = numbers, numbers += f.totals * LANES;
    memory.scales = numbers, numbers += 2 * f.unit_count * LANES;
    memory.values = numbers, numbers += f.labels * LANES;
    memory.partial = numbers, numbers += 2 * f.chunk_count * LANES;
    memory.far = numbers + u64(warp) * f.wide_region * LANES;
    memory.near = near + lane;
    memory.lines = region.y;
    memory.lane = lane;
    if (blockIdx.x * LANES >= to_do) return;
    // Layers that a leaf does not have are 0, and nothing writes them.
    for (int i = warp; i < f.messages; i += warps) AT(memory.inside, i) = 0;
    for (int first = blockIdx.x * LANES; first < to_do; first += gridDim.x * LANES) {
        __syncthreads();
        if (warp == 0) {
            row_of[lane] = first + lane < to_do ? row_at(rows, first + lane) : -1;
            scores_of[lane] = rows.scores + u64(max(row_of[lane], 0) % rows.scored) * f.labels;
            knowns_of[lane] = known_of(rows, max(row_of[lane], 0), f.labels);
            exponents[lane] = suspect[lane] = bad[lane] = 0;
        }
        __syncthreads();
        Loaded loaded = {0, 0};
        for (int tile = warp; tile < tiles; tile += warps)
            load_tile(f, memory, row_of, scores_of, knowns_of, tile, lane, near, loaded);
        for (int r = 0; r < LANES; r++)
            if (loaded.bad >> r & 1) atomicOr(&bad[r], 1);
        __syncthreads();
        if (f.chunk_count) {
            for (int c = warp; c < f.chunk_count; c += warps) largest_of_chunk(f, memory, c);
            __syncthreads();
            for (int c = warp; c < f.chunk_count; c += warps) weigh_chunk(f, memory, c, loaded);
            __syncthreads();
            for (int c = warp; c < f.chunk_count; c += warps) place_chunk(f, memory, c);
            __syncthreads();
        }
        Row row = {0, loaded.suspect};
        for (int level = 0; level < f.up_count; level++) {
            int from = __ldg(f.up_levels + level * warps + warp), to = __ldg(f.up_levels + level * warps + warp + 1);
            int next = from < to ? __ldg(f.up + from) : 0;
            for (int at = from; at < to; at++) {
                const Parent p = fetch(f.parents, next);
                next = __ldg(f.up + (at + 1 < to ? at + 1 : at));
                bring(f.parents + next);
                inside_any(f, memory, p, row);
            }
            __syncthreads();
        }
        for (int level = 0; level < f.down_count; level++) {
            int from = __ldg(f.down_levels + level * warps + warp), to = __ldg(f.down_levels + level * warps + warp + 1);
            int next = from < to ? __ldg(f.down + from) : 0;
            for (int at = from; at < to; at++) {
                const Parent p = fetch(f.parents, next);
                next = __ldg(f.down + (at + 1 < to ? at + 1 : at));
                bring(f.parents + next);
                outside_any(f, memory, p, row);
            }
            __syncthreads();
        }
        atomicAdd(&exponents[lane], row.exponents);
        atomicOr(&suspect[lane], row.suspect);
        __syncthreads();
        if (warp == 0 && row_of[lane] >= 0) {
            double offset = f.constant;
            for (int tile = 0; tile < tiles; tile++) offset += AT(memory.offsets, tile);
            for (int g = 0; g < f.groups; g++)
                offset += double(largest_of_group(f, memory, g)) + log(double(sum_of_group(f, memory, g)));
            double value = AT(memory.inside, f.root + 1);
            int what = ANSWERED;
            double log_partition = log(value) + exponents[lane] * LN_2 + offset;
            if (bad[lane]) {
                what = BAD_SCORE;
                log_partition = QUIET_NAN;
            } else if (suspect[lane] & 2) {
                what = OUT_OF_RANGE;
            } else if (suspect[lane]) {
                what = value == 0 ? IMPOSSIBLE : OUT_OF_RANGE;
                if (value == 0) log_partition = MINUS_INFINITY;
            }
            if (rows.again && (what == OUT_OF_RANGE || what == IMPOSSIBLE))
                rows.again[1 + atomicAdd(rows.again, 1)] = row_of[lane];
            status[lane] = what;
            rows.log_partition[row_of[lane]] = what == OUT_OF_RANGE ? QUIET_NAN : log_partition;
            rows.status[row_of[lane]] = what;
        }
        __syncthreads();
        for (int tile = warp; tile < tiles; tile += warps)
            store_tile(f, memory, rows, row_of, status, tile, lane, near);
    }
}
