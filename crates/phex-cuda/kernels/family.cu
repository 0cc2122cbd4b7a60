// Inside–outside with counters on a forest: the recursion of `phex::infer` (family), rows across the lanes of a warp.
//
//   F_j(m) = F_{j-1}(m) e0 + F_{j-1}(m-1) q^{m-1} e1,   B_{j-1}(m) = e0 B_j(m) + e1 q^m B_j(m+1)
//
// A block takes 32 rows; its warps share out the labels with children, level after level, with a barrier between levels.
// Every lane does the same steps on its own row, so nothing diverges, and every access is 32 consecutive numbers.
// Where rows are few, a block takes BLOCK_ROWS of them, and the lanes of a warp that this leaves over, in GROUPS of
// BLOCK_ROWS lanes, have other labels of the same level: a round of a warp is then GROUPS labels of about the same size.
// Messages lie in global memory (a block's own part, mostly in the second-level cache); the cells of a family in shared
// memory where they fit. They are not kept from the inside to the outside pass but made again, which is cheaper than
// to write and read them. Cost a row: O(sum of k^2) over families of k, and O(labels) numbers of traffic.

#define LANES 32
// A power of two up to LANES.
#define GROUPS (LANES / BLOCK_ROWS)

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
    int label, message, outside, weight, layers, units_from, units_to, own_from, own_to, same_layers;
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
    int plain, first_message, unused;
};

// `kind`: 0 plain, 1 one open group, 2 by the list of moves. Cells are counted from the unit's first.
struct __align__(16) Step {
    int label, message, outside, child_layers, input, input_width, input_layers, output, width, layers, kind, moves_from,
        moves_to, fall, unused[2];
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

// Starts to bring a record near, without a register to wait in.
template <class T> __device__ __forceinline__ void bring(const T *record) {
#ifdef __CUDACC_RTC__
    asm volatile("prefetch.global.L1 [%0];" ::"l"(record));
#endif
}

struct Chunk {
    int group, from, to;
};

struct Forest {
    const Parent *parents;
    const Unit *units;
    const Step *steps;
    // Of each step the child's label, outside message (or -1), inside message and layers.
    const int4 *children;
    const uchar4 *moves;
    const REAL *weights;
    const REAL *bias;
    // Where the weights of each label off and on go; -1 in `grouped` for labels that are not shifted with a group.
    const int2 *slots;
    const int *grouped;
    // Labels of one-of groups, in chunks of at most 32; the chunks of group g are group_chunks[g]..group_chunks[g + 1].
    const int *group_labels;
    const Chunk *chunks;
    const int *group_chunks;
    // Parents by height for the inside pass, by depth for the outside pass, and where those of each level and warp start.
    const int *up;
    const int *up_levels;
    const int *down;
    const int *down_levels;
    // Where each warp's part of shared memory starts, and its length, in lines of 32 numbers.
    const int2 *regions;
    int up_count, down_count;
    int labels, groups, chunk_count, messages, outside, totals, unit_count, root;
    // Numbers a lane of a warp's own region in global memory.
    int wide_region;
    // Numbers of scratch a block.
    u64 block_numbers;
    double constant;
};

// A block's memory. Index i of an array is at [i * BLOCK_ROWS + row]; pointers are advanced by the row.
struct Memory {
    REAL *inside, *outside, *totals, *shares, *scales, *values, *partial;
    double *offsets;
    // The warp's own, [i * LANES + lane]: in shared memory, and in global memory for what does not fit.
    REAL *near, *far;
    int lines, lane, mode;
    // Between cells of a lane, where the compiler does not know it.
    int stride;
};

// Where a round's cells lie, if its lanes have several labels: they must not take the memory apart differently.
#define NEAR 0
#define BY_EIGHT 1
#define FAR 2

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

// As `forward` below, for plain units: nothing is read of the steps, and the next child's messages are on their way while
// the cells of this one are made.
template <int STRIDE>
__device__ __forceinline__ void forward_plain(const Forest &f, const Memory &memory, const Unit &u, REAL *cells,
                                              REAL *scales, int *exponents) {
    const REAL *turns = f.weights + u.turns, *message = memory.inside + u.first_message * BLOCK_ROWS;
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
#pragma unroll 4
        for (int m = 0; m <= j; m++) {
            REAL x = CELL(in, m);
            REAL cell = x * e0 + carry;
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

__device__ __forceinline__ Dual read_dual(const Memory &memory, int4 child) {
    const REAL *message = memory.inside + child.z * BLOCK_ROWS;
    bool open = child.w == 2;
    return {AT(message, 0), AT(message, child.w), open ? AT(message, 1) : REAL(0), open ? AT(message, 3) : REAL(0)};
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
#pragma unroll 2
        for (int m = 0; m <= j; m++) {
            REAL x0 = CELL(in, m), x1 = CELL(in, j + 1 + m), turn = __ldg(turns + m);
            REAL cell_0 = x0 * a0 + carry_0, cell_1 = x1 * a0 + (x0 * b0 + carry_1);
            most = larger(most, larger(cell_0, cell_1));
            CELL(out, m) = cell_0;
            CELL(out, j + 2 + m) = cell_1;
            x0 *= turn;
            x1 *= turn;
            carry_0 = x0 * a1;
            carry_1 = x1 * a1 + x0 * b1;
        }
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
        const REAL *message = memory.inside + s.message * BLOCK_ROWS;
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

// A unit's cells lie in the warp's part of shared memory: those of all lanes side by side where they fit (STRIDE 32), else
// those of 8 lanes at a time (STRIDE 8), and where not even these fit, in global memory.
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

__device__ __forceinline__ void inside_unit(const Forest &f, const Memory &memory, const Unit &u, Row &row) {
    REAL *eighth = memory.near - memory.lane + memory.lane % 8;
#ifdef DOUBLE
    // Made once for all of its memories: doubles are for rows that are done again, and the compiler takes its time.
    int mode = GROUPS > 1 ? memory.mode : u.needs <= memory.lines ? NEAR : u.needs <= 4 * memory.lines ? BY_EIGHT : FAR;
    int parts = GROUPS == 1 && mode == BY_EIGHT ? 4 : 1;
    Memory own = memory;
    own.stride = mode == BY_EIGHT ? 8 : LANES;
    for (int part = 0; part < parts; part++) {
        REAL *cells = mode == NEAR ? memory.near : mode == BY_EIGHT ? eighth : memory.far;
        if (parts == 1 || memory.lane / 8 == part) inside_unit<0>(f, own, u, cells, row);
        if (parts > 1) __syncwarp();
    }
#elif GROUPS > 1
    // The round has eight lanes here at a time, if any: see `visit_level`. Few labels are not near.
    Memory own = memory;
    own.stride = memory.mode == BY_EIGHT ? 8 : LANES;
    if (memory.mode == NEAR) inside_unit<LANES>(f, memory, u, memory.near, row);
    else inside_unit<0>(f, own, u, memory.mode == BY_EIGHT ? eighth : memory.far, row);
#else
    if (u.needs <= memory.lines) inside_unit<LANES>(f, memory, u, memory.near, row);
    else if (u.needs <= 4 * memory.lines) {
        for (int part = 0; part < 4; part++) {
            if (memory.lane / 8 == part) inside_unit<8>(f, memory, u, eighth, row);
            // The next eight take the same memory.
            __syncwarp();
        }
    } else inside_unit<LANES>(f, memory, u, memory.far, row);
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
    AT(memory.scales, 2 * index) = scale;
    AT(memory.scales, 2 * index + 1) = again;
}

__device__ __forceinline__ void inside_parent(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    for (int index = p.units_from; index < p.units_to; index++) {
        inside_unit(f, memory, fetch(f.units, index), row);
        if (index > p.units_from) multiply(f, memory, index, row);
    }
    const Unit last = fetch(f.units, p.units_to - 1);
    REAL off = p.label < 0 ? REAL(0) : AT(memory.inside, p.weight);
    REAL on = p.label < 0 ? REAL(1) : AT(memory.inside, p.weight + 1);
    REAL message[2 * MAX_LAYERS];
    REAL most = 0;
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++) message[i] = 0;
    if (p.same_layers) {
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++)
            if (i < 2 * p.layers) message[i] = AT(memory.totals, last.product + i) * (i < p.layers ? off : on);
    } else {
        for (int way = p.own_from; way < p.own_to; way++) {
            uchar4 move = __ldg(f.moves + way);
            REAL below = AT(memory.totals, last.product + move.y * last.product_layers + move.x);
            int to = move.y * p.layers + move.z;
#pragma unroll
            for (int i = 0; i < 2 * MAX_LAYERS; i++)
                if (i == to) message[i] += below * (move.y ? on : off);
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++) most = larger(most, message[i]);
    REAL scale = power_of_two(most, row.exponents);
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++)
        if (i < 2 * p.layers) AT(memory.inside, p.message + i) = message[i] * scale;
    // The outside pass needs them scaled.
    AT(memory.inside, p.weight) = off * scale;
    AT(memory.inside, p.weight + 1) = on * scale;
}
