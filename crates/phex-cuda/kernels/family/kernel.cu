// The kernel of `family`: the rounds of each warp, and what a block does with its rows.

// The rounds of a warp on the way up or down. What the next round reads from the tables is loaded while this one waits and
// works.
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
        if (next.x & ALONE) prefetch_record(f.units + coming.units_from);
        else prefetch_record(f.children + next.y);
        // A warp that waits sleeps, so that the warps that work get the instruction slots.
        while (__any_sync(ALL_LANES, progress[other] < count)) __nanosleep(200);
        __threadfence_block();
        __syncwarp();
        if (works && INSIDE) inside_any(f, memory, p, row);
        if (works && !INSIDE) outside_any(f, memory, p, row);
        __syncwarp();
        __threadfence_block();
        if (memory.lane == 0) progress[warp] = progress[warp] + 1;
    }
}

// The arrays of the block, one after another: in shared memory before those of the warps if RESIDENT.
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
    __shared__ BlockInput input;
    __shared__ int exponents[BLOCK_ROWS], suspect[BLOCK_ROWS], bad[BLOCK_ROWS], status[BLOCK_ROWS];
    // How many rounds each warp has done.
    __shared__ volatile int progress[MOST_WARPS];
    int warps = blockDim.x / LANES, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    // The number of this group of lanes within the block, and the lane's row. The first lanes of a block speak for one row each.
    int group = warp * GROUPS + group_of_lane(lane), groups = warps * GROUPS, mine = row_of_lane(lane);
    bool speaks = threadIdx.x < BLOCK_ROWS;
    int to_do = rows_to_do(rows), tiles = (f.labels + TILE - 1) / TILE;
    int2 region = f.regions[warp];
    Memory memory = memory_of(f, scratch, reinterpret_cast<REAL *>(shared_memory), region, tiles);
    REAL *near = memory.near - lane;
    if (blockIdx.x * BLOCK_ROWS >= to_do) return;
    // Layers that a leaf does not have stay 0: nothing writes them.
    for (int i = group; i < f.messages; i += groups) AT(memory.numbers, i) = 0;
    for (int first = blockIdx.x * BLOCK_ROWS; first < to_do; first += gridDim.x * BLOCK_ROWS) {
        __syncthreads();
        if (speaks) {
            int row = first + mine < to_do ? row_at(rows, first + mine) : -1;
            input.row[mine] = row;
            input.scores[mine] = scores_of(rows, max(row, 0), f.labels);
            input.codes[mine] = evidence_of(rows, max(row, 0), f.labels);
            exponents[mine] = suspect[mine] = bad[mine] = 0;
        }
        if (threadIdx.x < MOST_WARPS) progress[threadIdx.x] = 0;
        for (int set = group; set < SETS; set += groups) clear_set(f, memory, set);
        __syncthreads();
        Loaded loaded = {0, 0};
        for (int tile = warp; tile < tiles; tile += warps)
            load_tile(f, memory, input, tile, lane, near, loaded);
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
        // Loads the scores of the next rows into the second-level cache meanwhile.
        int ahead = first + gridDim.x * BLOCK_ROWS + lane;
        if (!rows.listed && lane < BLOCK_ROWS && ahead < to_do) {
            const SCORE *scores = scores_of(rows, ahead, f.labels);
            for (int at = warp * 128 / sizeof(SCORE); at < f.labels; at += warps * 128 / sizeof(SCORE)) prefetch_far(scores + at);
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
        if (speaks && input.row[mine] >= 0) {
            if (bad[mine]) what = BAD_SCORE;
            else if (suspect[mine] & 2) what = OUT_OF_RANGE;
            else if (suspect[mine]) what = AT(memory.numbers, f.root + 1) == 0 ? IMPOSSIBLE : OUT_OF_RANGE;
            if (rows.again && (what == OUT_OF_RANGE || what == IMPOSSIBLE))
                rows.again[1 + atomicAdd(rows.again, 1)] = input.row[mine];
            status[mine] = what;
            rows.status[input.row[mine]] = what;
        }
        __syncthreads();
        for (int tile = warp; tile < tiles; tile += warps)
            store_tile(f, memory, rows, input.row, status, tile, lane, near);
        // The first warp does this while others write.
        if (speaks && input.row[mine] >= 0) {
            double offset = f.constant;
            for (int tile = 0; tile < tiles; tile++) offset += AT(memory.offsets, tile);
            for (int g = 0; g < f.groups; g++)
                offset += double(largest_of_group(f, memory, g)) + log(double(sum_of_group(f, memory, g)));
            double log_partition = log(double(AT(memory.numbers, f.root + 1))) + exponents[mine] * LN_2 + offset;
            if (what == BAD_SCORE || what == OUT_OF_RANGE) log_partition = QUIET_NAN;
            if (what == IMPOSSIBLE) log_partition = MINUS_INFINITY;
            rows.log_partition[input.row[mine]] = log_partition;
        }
    }
}
