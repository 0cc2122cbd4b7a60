// Inside–outside with counters on a forest: the recursion of `phex::infer` (family), rows across the lanes of a warp.
//
//   F_j(m) = F_{j-1}(m) e0 + F_{j-1}(m-1) q^{m-1} e1,   B_{j-1}(m) = e0 B_j(m) + e1 q^m B_j(m+1)
//
// A block takes BLOCK_ROWS rows, and its warps share out the labels with children in rounds. A round waits for those that it
// needs, by how far each warp has come: families differ so much in size that barriers between levels would take most of the
// time. Where a block's numbers fit (RESIDENT) they stay in shared memory, else they lie in global memory (a block's own part, mostly in the
// second-level cache). The lanes of a warp that few rows leave over, in GROUPS of BLOCK_ROWS lanes, have other labels of the
// same level: a round of a warp is GROUPS labels of about the same size, or one large family alone.
// A label has one place for its messages. The way down overwrites them: a child's message from below by the one from above,
// its weight (or a leaf's message) by its marginal. Leaves of a one-of group that were folded into a child or into their parent
// have a number each, which is summed up before the way up and shared out after the way down. The cells of a family are not kept from the way up but made again, which
// is cheaper than to write and read them. Cost a row: O(sum of k^2) over families of k, and O(labels) numbers.

#define LANES 32
// A power of two up to LANES.
#define GROUPS (LANES / BLOCK_ROWS)
// Whether the numbers of a block's rows lie in shared memory.
#define RESIDENT (GROUPS > 1)

// The row of a lane within its block, and which of the warp's groups of lanes it is in.
__device__ __forceinline__ int row_of_lane(int lane) { return GROUPS > 1 ? lane % BLOCK_ROWS : lane; }
__device__ __forceinline__ int group_of_lane(int lane) { return GROUPS > 1 ? lane / BLOCK_ROWS : 0; }

// 1 / total is taken as 2 - total: the check lets totals pass that make this exact to rounding.
#ifdef DOUBLE
#define LIMIT 600.0
#define TOLERANCE 1e-10
#define CLAMPED 1e-13
#else
#define LIMIT 80.0f
#define TOLERANCE 1e-4f
#define CLAMPED 1e-7f
#endif

struct __align__(16) Parent {
    int label, message, weight, layers, units_from, units_to, own_from, own_to, same_layers, unused;
    // For family_simple.cu: 0, or how many layers; and of its only unit the size, the first child and its message, and
    // the weights.
    int simple, size, children, first_message, turns, falls;
};

struct __align__(16) Unit {
    int steps_from, steps_to, shared, width, most_layers, layers, total, product, product_layers, moves_from, moves_to,
        turns, falls, clamped_turn, clamped_fall, cells;
    // Numbers a lane of the warp's own memory: cells, scales and backward cells.
    int needs;
    // 1: one stream without layers, whose children's messages lie side by side from the first on. 2: one stream whose
    // layers multiply like dual numbers; all its cells have two.
    int plain, first_message;
    // Where the two scales of its product are.
    int scales;
    // Whether its counts go across lanes, if it has the round alone: see family_large.cu.
    int large, unused[3];
};

// `kind`: 0 plain, 1 one open group, 2 by the list of moves. Cells are counted from the unit's first.
// `value`: where the child's marginal goes; its weights lie there if it has children, which `parent` tells. `folded`: it has
// leaves, which have no steps.
struct __align__(16) Step {
    int value, message, parent, child_layers, input, input_width, input_layers, output, width, layers, kind, moves_from,
        moves_to, fall, folded, unused;
};

// A record of a table, read at once into registers. Tables never change, which the compiler cannot know: through a
// plain reference it would read a record again after every write.
template <class T> __device__ __forceinline__ T fetch(const T *table, int at) {
    T record;
    const int4 *from = reinterpret_cast<const int4 *>(table + at);
    int4 *to = reinterpret_cast<int4 *>(&record);
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 16); i++) to[i] = __ldg(from + i);
    return record;
}

// The same into the cache of all multiprocessors.
__device__ __forceinline__ void prefetch(const void *place) {
#ifdef __CUDACC_RTC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}

struct Chunk {
    int group, from, to;
};

struct Forest {
    const Parent *parents;
    const Unit *units;
    const Step *steps;
    // Of each step: where the child's messages are, with OPEN where they have two layers; and where its own weights
    // are if it has children, else -1, or FOLDED.
    const int2 *children;
    const uchar4 *moves;
    const REAL *weights;
    const REAL *bias;
    // Where the weights of each label off and on go; -1 in `grouped` for labels that are not shifted with a group.
    const int2 *slots;
    const int *grouped;
    // Where the weights on of the labels of one-of groups are, in chunks of at most 32; the chunks of group g are
    // group_chunks[g]..group_chunks[g + 1].
    const int *group_places;
    const Chunk *chunks;
    const int *group_chunks;
    // The rounds of each warp, GROUPS entries each, first the way up and then the way down; where those of each warp start,
    // its way down, and those of the next warp.
    const int2 *rounds;
    const int *starts;
    // For each round, how many rounds each of MOST_WARPS warps must have done.
    const unsigned short *awaited;
    // Where each warp's part of shared memory starts, and its length, in lines of 32 numbers.
    const int2 *regions;
    // Sets of leaves of a one-of group that were folded: the messages of what they were folded into; the weight of their edge
    // below a parent that is off if that is their parent, else -1; their members, and where those have their numbers.
    const int4 *sets;
    const int *members;
    int labels, groups, chunk_count, set_count, messages, totals, scales, root;
    // Numbers a lane of a warp's own region in global memory.
    int wide_region, unused;
    // Numbers of scratch a block.
    u64 block_numbers;
    double constant;
};

// A block's memory. Index i of an array is at [i * BLOCK_ROWS + row]; pointers are advanced by the row.
struct Memory {
    REAL *numbers, *totals, *shares, *scales, *partial;
    double *offsets;
    // The warp's own in shared memory, and in global memory for what does not fit.
    REAL *near, *far;
    int lines, lane;
    // One label has the round: its cells lie from this line of shared memory on, if not -1, the block's rows side by side.
    bool alone;
    int cells;
    REAL *shared;
    // Between cells of a lane, where the compiler does not know it.
    int stride;
};

#define MOST_WARPS 16

// In an entry of a round: no parent, the round has one parent alone.
#define NONE 0x0fffffff
#define ALONE 0x10000000
// In a child's entry: two layers; a parent that was folded.
#define OPEN 0x40000000
#define FOLDED -2

#define AT(array, index) (array)[(index) * BLOCK_ROWS]
// Cells of a unit: STRIDE is known to the compiler, or 0.
#define SPAN (STRIDE ? STRIDE : memory.stride)
#define CELL(array, index) (array)[(index) * SPAN]

struct Row {
    int exponents;
    int suspect;
};

__device__ __forceinline__ REAL child_on(const Forest &f, const Unit &u, const Step &s, int y, REAL value) {
    return (u.shared || y == 1) ? value : value * __ldg(f.weights + s.fall);
}

// Cells that are read before any is written: memory answers late, and the compiler cannot know that they differ from
// those written.
#define AHEAD 4

// As `forward` below, for plain units: nothing is read of the steps, and the next child's messages are on their way while
// the cells of this one are made.
template <int STRIDE>
__device__ __forceinline__ void forward_plain(const Forest &f, const Memory &memory, const Unit &u, REAL *cells,
                                              REAL *scales, int *exponents) {
    const REAL *turns = f.weights + u.turns, *message = memory.numbers + u.first_message * BLOCK_ROWS;
    int size = u.steps_to - u.steps_from;
    REAL off = AT(message, 0), on = AT(message, 1), scale = 1;
    CELL(cells, 0) = 1;
    const REAL *in = cells;
    REAL *out = cells + SPAN;
    for (int j = 0; j < size; j++) {
        int next = j + 1 < size ? 2 * (j + 1) : 0;
        REAL next_off = AT(message, next), next_on = AT(message, next + 1);
        CELL(scales, j) = scale;
        REAL e0 = off * scale, e1 = on * scale, carry = 0, most = 0;
        int m = 0;
        for (; m + AHEAD <= j + 1; m += AHEAD) {
            REAL x[AHEAD], turn[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) x[i] = CELL(in, m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                REAL cell = x[i] * e0 + carry;
                most = larger(most, cell);
                CELL(out, m + i) = cell;
                carry = x[i] * turn[i] * e1;
            }
        }
        for (; m <= j; m++) {
            REAL x = CELL(in, m), cell = x * e0 + carry;
            most = larger(most, cell);
            CELL(out, m) = cell;
            carry = x * __ldg(turns + m) * e1;
        }
        CELL(out, j + 1) = carry;
        most = larger(most, carry);
        if (j + 1 < size) scale = power_of_two(most, *exponents);
        in = out;
        out += (j + 2) * SPAN;
        off = next_off;
        on = next_on;
    }
}

// A child's messages off and on, without and with a label of the open group.
struct Dual {
    REAL a0, a1, b0, b1;
};

__device__ __forceinline__ Dual read_dual(const Memory &memory, int2 child) {
    bool open = child.x & OPEN;
    const REAL *message = memory.numbers + (child.x & ~OPEN) * BLOCK_ROWS;
    return {AT(message, 0), AT(message, open ? 2 : 1), open ? AT(message, 1) : REAL(0), open ? AT(message, 3) : REAL(0)};
}

// As `forward_plain`, with one open group.
template <int STRIDE>
__device__ __forceinline__ void forward_dual(const Forest &f, const Memory &memory, const Unit &u, REAL *cells,
                                             REAL *scales, int *exponents) {
    const REAL *turns = f.weights + u.turns;
    int size = u.steps_to - u.steps_from;
    Dual e = read_dual(memory, __ldg(f.children + u.steps_from));
    REAL scale = 1;
    CELL(cells, 0) = 1;
    CELL(cells, 1) = 0;
    const REAL *in = cells;
    REAL *out = cells + 2 * SPAN;
    for (int j = 0; j < size; j++) {
        Dual next = read_dual(memory, __ldg(f.children + u.steps_from + (j + 1 < size ? j + 1 : 0)));
        CELL(scales, j) = scale;
        REAL a0 = e.a0 * scale, a1 = e.a1 * scale, b0 = e.b0 * scale, b1 = e.b1 * scale;
        REAL carry_0 = 0, carry_1 = 0, most = 0;
        auto one = [&](int m, REAL x0, REAL x1, REAL turn) {
            REAL cell_0 = x0 * a0 + carry_0, cell_1 = x1 * a0 + (x0 * b0 + carry_1);
            most = larger(most, larger(cell_0, cell_1));
            CELL(out, m) = cell_0;
            CELL(out, j + 2 + m) = cell_1;
            x0 *= turn;
            x1 *= turn;
            carry_0 = x0 * a1;
            carry_1 = x1 * a1 + x0 * b1;
        };
        int m = 0;
        for (; m + AHEAD <= j + 1; m += AHEAD) {
            REAL x0[AHEAD], x1[AHEAD], turn[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                x0[i] = CELL(in, m + i), x1[i] = CELL(in, j + 1 + m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) one(m + i, x0[i], x1[i], turn[i]);
        }
        for (; m <= j; m++) one(m, CELL(in, m), CELL(in, j + 1 + m), __ldg(turns + m));
        CELL(out, j + 1) = carry_0;
        CELL(out, 2 * j + 3) = carry_1;
        most = larger(most, larger(carry_0, carry_1));
        if (j + 1 < size) scale = power_of_two(most, *exponents);
        in = out;
        out += 2 * (j + 2) * SPAN;
        e = next;
    }
}

// All cells of a unit, step after step, and the scale that each step applies.
template <int STRIDE>
__device__ __forceinline__ void forward(const Forest &f, const Memory &memory, const Unit &u, REAL *cells, REAL *scales,
                                        int *exponents) {
    if (u.plain == 1) return forward_plain<STRIDE>(f, memory, u, cells, scales, exponents);
#if MAX_LAYERS > 1
    if (u.plain == 2) return forward_dual<STRIDE>(f, memory, u, cells, scales, exponents);
#endif
    const REAL *turns = f.weights + u.turns;
    int streams = u.shared ? 1 : 2;
    for (int y = 0; y < streams; y++) CELL(cells, y) = 1;
    REAL scale = 1;
    for (int at = u.steps_from; at < u.steps_to; at++) {
        const Step s = fetch(f.steps, at);
        CELL(scales, at - u.steps_from) = scale;
        REAL most = 0;
        const REAL *message = memory.numbers + s.message * BLOCK_ROWS;
        for (int y = 0; y < streams; y++) {
            const REAL *in = cells + (s.input + y * s.input_layers * s.input_width) * SPAN;
            REAL *out = cells + (s.output + y * s.layers * s.width) * SPAN;
            if (s.kind == 0) {
                REAL e0 = AT(message, 0) * scale;
                REAL e1 = child_on(f, u, s, y, AT(message, 1) * scale);
                REAL carry = 0;
#pragma unroll 4
                for (int m = 0; m < s.input_width; m++) {
                    REAL x = CELL(in, m);
                    REAL cell = x * e0 + carry;
                    most = larger(most, cell);
                    CELL(out, m) = cell;
                    carry = x * __ldg(turns + m) * e1;
                }
                CELL(out, s.input_width) = carry;
                most = larger(most, carry);
            } else if (s.kind == 1) {
                REAL a0 = AT(message, 0) * scale, b0 = AT(message, 1) * scale;
                REAL a1 = child_on(f, u, s, y, AT(message, 2) * scale);
                REAL b1 = child_on(f, u, s, y, AT(message, 3) * scale);
                const REAL *in_1 = in + s.input_width * SPAN;
                REAL *out_1 = out + s.width * SPAN;
                REAL carry_0 = 0, carry_1 = 0;
#pragma unroll 2
                for (int m = 0; m < s.input_width; m++) {
                    REAL x0 = CELL(in, m), x1 = CELL(in_1, m);
                    REAL cell_0 = x0 * a0 + carry_0;
                    REAL cell_1 = x1 * a0 + (x0 * b0 + carry_1);
                    most = larger(most, larger(cell_0, cell_1));
                    CELL(out, m) = cell_0;
                    CELL(out_1, m) = cell_1;
                    x0 *= __ldg(turns + m);
                    x1 *= __ldg(turns + m);
                    carry_0 = x0 * a1;
                    carry_1 = x1 * a1 + x0 * b1;
                }
                CELL(out, s.input_width) = carry_0;
                CELL(out_1, s.input_width) = carry_1;
                most = larger(most, larger(carry_0, carry_1));
            } else {
                for (int m = 0; m < s.layers * s.width; m++) CELL(out, m) = 0;
                for (int way = s.moves_from; way < s.moves_to; way++) {
                    uchar4 move = __ldg(f.moves + way);
                    REAL e0 = AT(message, move.y) * scale;
                    REAL e1 = child_on(f, u, s, y, AT(message, s.child_layers + move.y) * scale);
                    const REAL *from = in + move.x * s.input_width * SPAN;
                    REAL *to = out + move.z * s.width * SPAN;
                    for (int m = 0; m < s.input_width; m++) {
                        REAL x = CELL(from, m);
                        CELL(to, m) += x * e0;
                        CELL(to, m + 1) += x * __ldg(turns + m) * e1;
                    }
                }
                for (int m = 0; m < s.layers * s.width; m++) most = larger(most, CELL(out, m));
            }
        }
        if (at + 1 < u.steps_to) scale = power_of_two(most, *exponents);
    }
}

template <int STRIDE>
__device__ __forceinline__ void inside_unit(const Forest &f, const Memory &memory, const Unit &u, REAL *cells, Row &row) {
    forward<STRIDE>(f, memory, u, cells, cells + u.cells * SPAN, &row.exponents);
    // The last cells are those of the last step.
    int streams = u.shared ? 1 : 2;
    const REAL *end = cells + (u.cells - streams * u.layers * u.width) * SPAN;
    const REAL *falls = f.weights + u.falls;
    for (int layer = 0; layer < u.layers; layer++) {
        const REAL *low = end + layer * u.width * SPAN;
        const REAL *high = u.shared ? low : low + u.layers * u.width * SPAN;
        REAL off = 0, on = 0;
        for (int m = 0; m < u.width; m++) {
            REAL cell = CELL(high, m);
            on += cell;
            off += u.shared ? cell * __ldg(falls + m) : CELL(low, m);
        }
        AT(memory.totals, u.total + layer) = off;
        AT(memory.totals, u.total + u.layers + layer) = on;
    }
}

// Calls `pass.at<STRIDE>(memory, cells)` where the cells of a unit lie: those of all lanes side by side in the warp's part of
// shared memory where they fit, else those of few lanes at a time, and where not even these fit, in global memory. STRIDE is 0
// where the compiler does not know it. No lambda: NVRTC takes generic ones for functions of the host.
template <class Pass> __device__ __forceinline__ void with_cells(const Memory &memory, const Unit &u, Pass pass) {
    REAL *eighth = memory.near - memory.lane + memory.lane % 8;
    Memory own = memory;
    own.stride = LANES;
#if GROUPS > 1
    // Labels that share a round fit; one alone has the lanes of one group. Few come here, so one instance does for all.
    bool placed = memory.alone && memory.cells >= 0;
    if (placed) own.stride = BLOCK_ROWS;
    REAL *cells = placed ? memory.shared + memory.cells * LANES + memory.lane : memory.alone ? memory.far : memory.near;
    pass.template at<0>(own, cells);
#elif defined DOUBLE
    // Made once for all of its memories: doubles are for rows that are done again, and the compiler takes its time.
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
            // The next eight take the same memory.
            __syncwarp();
        }
    } else pass.template at<LANES>(memory, memory.far);
#endif
}

// The product of totals up to a unit, from the product before it.
__device__ __forceinline__ void multiply(const Forest &f, const Memory &memory, int index, Row &row) {
    const Unit u = fetch(f.units, index), before = fetch(f.units, index - 1);
    REAL most = 0;
    for (int i = 0; i < 2 * u.layers; i++) most = larger(most, AT(memory.totals, u.total + i));
    REAL scale = power_of_two(most, row.exponents);
    for (int i = 0; i < 2 * u.product_layers; i++) AT(memory.totals, u.product + i) = 0;
    for (int y = 0; y < 2; y++)
        for (int way = u.moves_from; way < u.moves_to; way++) {
            uchar4 move = __ldg(f.moves + way);
            REAL x = AT(memory.totals, before.product + y * before.product_layers + move.x);
            REAL total = AT(memory.totals, u.total + y * u.layers + move.y) * scale;
            AT(memory.totals, u.product + y * u.product_layers + move.z) += x * total;
        }
    most = 0;
    for (int i = 0; i < 2 * u.product_layers; i++) most = larger(most, AT(memory.totals, u.product + i));
    // Two scales: a total and a product may each be far from 1.
    REAL again = power_of_two(most, row.exponents);
    for (int i = 0; i < 2 * u.product_layers; i++) AT(memory.totals, u.product + i) *= again;
    AT(memory.scales, u.scales) = scale;
    AT(memory.scales, u.scales + 1) = again;
}
