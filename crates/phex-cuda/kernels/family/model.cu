// Inside-outside with counters on a forest, the recursion of `phex::infer` (family): its tables and its memory.
//
//   F_j(m) = F_{j-1}(m) e0 + F_{j-1}(m-1) q^{m-1} e1,   B_{j-1}(m) = e0 B_j(m) + e1 q^m B_j(m+1)
//
// A block takes BLOCK_ROWS rows. Its warps share the labels that have children, in rounds. A round waits for the rounds that
// it needs, by how many rounds each warp has done: families differ so much in size that barriers between levels would take
// most of the time. The numbers of a block stay in shared memory where they fit (RESIDENT), otherwise in the block's part of
// global memory, mostly in the second-level cache. With few rows per block, the lanes of a warp form GROUPS groups of
// BLOCK_ROWS lanes, each with a label of its own: a round is then GROUPS labels of one level and about the same size, or one
// large family alone.
//
// A label has one place for its messages. The way down overwrites them: the message from below by the one from above, and the
// label's weight (or a leaf's message) by its marginal. Leaves of a one-of group that were folded into one child, or into
// their parent, have one number each; the numbers are summed before the way up and shared out after the way down. The way
// down computes the cells of a family again, which is cheaper than writing and reading them. Cost per row: O(sum of k^2) over
// families of k, and O(labels) numbers.

#define LANES 32
// A power of two up to LANES.
#define GROUPS (LANES / BLOCK_ROWS)
// Whether the numbers of a block's rows lie in shared memory.
#define RESIDENT (GROUPS > 1)

// The row of a lane within its block, and the lane's group within the warp.
__device__ __forceinline__ int row_of_lane(int lane) { return GROUPS > 1 ? lane % BLOCK_ROWS : lane; }
__device__ __forceinline__ int group_of_lane(int lane) { return GROUPS > 1 ? lane / BLOCK_ROWS : 0; }

// Weights beyond e^-LIMIT are cut off. TOLERANCE: how far a total may be from 1, so that 1 / total is 2 - total to rounding.
// CLAMPED: how much mass may sit where a weight was cut off.
#ifdef DOUBLE
#define LIMIT 600.0
#define TOLERANCE 1e-10
#define CLAMPED 1e-13
#else
#define LIMIT 80.0f
#define TOLERANCE 1e-4f
#define CLAMPED 1e-7f
#endif

// The records of src/family/tables.rs, which explains their fields.

struct __align__(16) Parent {
    int label, message, weight, layers, units_from, units_to, own_from, own_to, same_layers, unused;
    // For simple.cu.
    int simple, size, children, first_message, turns, falls;
};

struct __align__(16) Unit {
    int steps_from, steps_to, shared, width, most_layers, layers, total, product, product_layers, moves_from, moves_to,
        turns, falls, clamped_turn, clamped_fall, cells;
    // How many numbers each lane needs in the warp's own memory: cells, scales and backward cells.
    int needs;
    // PLAIN, DUAL or 0. The messages of a plain unit's children lie side by side from `first_message` on.
    int form, first_message;
    int scales, large, unused[3];
};

// One stream without layers; one stream whose layers multiply like dual numbers, so that all cells have two.
#define PLAIN 1
#define DUAL 2

struct __align__(16) Step {
    int value, message, parent, child_layers, input, input_width, input_layers, output, width, layers, kind, moves_from,
        moves_to, fall, folded, unused;
};

// Kinds of steps: no layers, one open group, and by the list of moves.
#define PLAIN_STEP 0
#define DUAL_STEP 1

struct Chunk {
    int group, from, to;
};

struct Forest {
    const Parent *parents;
    const Unit *units;
    const Step *steps;
    // For each step: where the child's messages are, with OPEN if they have two layers; and where its own weights are if it
    // has children, otherwise -1 or FOLDED.
    const int2 *children;
    const uchar4 *moves;
    const REAL *weights;
    const REAL *bias;
    // Where the weights of each label off and on go; whether the label is in a one-of group.
    const int2 *slots;
    const int *grouped;
    // Where the weights on of the labels of one-of groups are, in chunks of at most 32; the chunks of group g are
    // group_chunks[g]..group_chunks[g + 1].
    const int *group_places;
    const Chunk *chunks;
    const int *group_chunks;
    // The rounds of each warp, GROUPS entries each, first those of the way up, then those of the way down. `starts` has two
    // entries per warp: where its rounds up and its rounds down start.
    const int2 *rounds;
    const int *starts;
    // For each round, how many rounds each of MOST_WARPS warps must have done.
    const unsigned short *awaited;
    // Where each warp's part of shared memory starts, and its length, in lines of 32 numbers.
    const int2 *regions;
    // Sets of folded leaves: the messages of what they were folded into; the weight of their edge below a parent that is off,
    // if that is their parent, otherwise -1; their members from and to. And where members have their numbers.
    const int4 *sets;
    const int *members;
    int labels, groups, chunk_count, set_count, messages, totals, scales, root;
    // Numbers per lane of a warp's own region in global memory.
    int wide_region, unused;
    // Numbers of scratch memory per block.
    u64 block_numbers;
    double constant;
};

// A block's memory. Entry i of an array is at [i * BLOCK_ROWS + row]; the pointers are already advanced by the row.
struct Memory {
    REAL *numbers, *totals, *shares, *scales, *partial;
    double *offsets;
    // The warp's own part of shared memory, and of global memory for what does not fit.
    REAL *near, *far;
    int lines, lane;
    // Whether one label has the round alone. Its cells then start at line `cells` of shared memory, unless that is -1, with
    // the block's rows side by side.
    bool alone;
    int cells;
    REAL *shared;
    // The distance between two cells of a lane, where the compiler does not know it.
    int stride;
};

#define MOST_WARPS 16

// In an entry of a round: there is no parent; the round has one parent alone.
#define NONE 0x0fffffff
#define ALONE 0x10000000
// In a child's entry: its messages have two layers; it is a parent that was folded.
#define OPEN 0x40000000
#define FOLDED -2

#define AT(array, index) (array)[(index) * BLOCK_ROWS]
// Cells of a unit. STRIDE is their distance if the compiler knows it, otherwise 0.
#define SPAN (STRIDE ? STRIDE : memory.stride)
#define CELL(array, index) (array)[(index) * SPAN]

// What a thread finds out about its row: the powers of two it has divided by, and whether numbers left the range (1 a sum,
// 2 a score).
struct Row {
    int exponents;
    int suspect;
};

// Reads a record of a table at once, into registers. Tables never change, which the compiler cannot know: through a plain
// reference it would read a record again after every write.
template <class T> __device__ __forceinline__ T fetch(const T *table, int at) {
    T record;
    const int4 *from = reinterpret_cast<const int4 *>(table + at);
    int4 *to = reinterpret_cast<int4 *>(&record);
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 16); i++) to[i] = __ldg(from + i);
    return record;
}

// Starts to load a record into the first-level cache, or a place into the second-level cache.
template <class T> __device__ __forceinline__ void prefetch_record(const T *record) {
#ifdef __CUDACC_RTC__
    asm volatile("prefetch.global.L1 [%0];" ::"l"(record));
#endif
}

__device__ __forceinline__ void prefetch_far(const void *place) {
#ifdef __CUDACC_RTC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}

__device__ __forceinline__ REAL child_on(const Forest &f, const Unit &u, const Step &s, int y, REAL value) {
    return (u.shared || y == 1) ? value : value * __ldg(f.weights + s.fall);
}

// A child's messages: a without and b with a label of the open group, 0 off and 1 on.
struct Dual {
    REAL a0, a1, b0, b1;
};

__device__ __forceinline__ Dual times(const Dual &e, REAL scale) {
    return {e.a0 * scale, e.a1 * scale, e.b0 * scale, e.b1 * scale};
}

__device__ __forceinline__ Dual read_dual(const Memory &memory, int2 child) {
    bool open = child.x & OPEN;
    const REAL *message = memory.numbers + (child.x & ~OPEN) * BLOCK_ROWS;
    return {AT(message, 0), AT(message, open ? 2 : 1), open ? AT(message, 1) : REAL(0), open ? AT(message, 3) : REAL(0)};
}

// Calls `pass.at<STRIDE>(memory, cells)` where the cells of a unit lie: in the warp's part of shared memory for all lanes side
// by side where that fits, otherwise for eight lanes at a time, otherwise in global memory. STRIDE is 0 where the compiler
// does not know it. Not a lambda: NVRTC treats generic lambdas as functions of the host.
template <class Pass> __device__ __forceinline__ void with_cells(const Memory &memory, const Unit &u, Pass pass) {
    REAL *eighth = memory.near - memory.lane + memory.lane % 8;
    Memory own = memory;
    own.stride = LANES;
#if GROUPS > 1
    // Labels that share a round fit; a label alone uses the lanes of one group. Few labels come here, so one instance of the
    // code does for all of them.
    bool placed = memory.alone && memory.cells >= 0;
    if (placed) own.stride = BLOCK_ROWS;
    REAL *cells = placed ? memory.shared + memory.cells * LANES + memory.lane : memory.alone ? memory.far : memory.near;
    pass.template at<0>(own, cells);
#elif defined DOUBLE
    // One instance for all memories: doubles are for few rows, and this code takes long to compile.
    bool near = u.needs <= memory.lines, by_eight = !near && u.needs <= 4 * memory.lines;
    if (by_eight) own.stride = 8;
    for (int part = 0; part < (by_eight ? 4 : 1); part++) {
        REAL *cells = near ? memory.near : by_eight ? eighth : memory.far;
        if (!by_eight || memory.lane / 8 == part) pass.template at<0>(own, cells);
        if (by_eight) __syncwarp();
    }
#else
    if (u.needs <= memory.lines) pass.template at<LANES>(memory, memory.near);
    else if (u.needs <= 4 * memory.lines) {
        for (int part = 0; part < 4; part++) {
            if (memory.lane / 8 == part) pass.template at<8>(memory, eighth);
            // The next eight lanes use the same memory.
            __syncwarp();
        }
    } else pass.template at<LANES>(memory, memory.far);
#endif
}
