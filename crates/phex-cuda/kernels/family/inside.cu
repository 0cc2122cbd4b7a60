// The inside pass of `family` through one counted set of children (a unit): its cells, child after child, and its totals.

// Cells that are read before any is written, where that is worth the registers: memory answers late, and the compiler cannot
// know that the cells read differ from those written.
#define MANY 4

// One more child joins cells of `width` counts, which become one more. Returns the largest of the new cells. AHEAD cells are
// read before any is written.
template <int STRIDE, int AHEAD>
__device__ __forceinline__ REAL join_plain(const Memory &memory, const REAL *turns, const REAL *in, REAL *out, int width,
                                           REAL e0, REAL e1) {
    REAL carry = 0, most = 0;
    auto one = [&](int m, REAL x, REAL turn) {
        REAL cell = x * e0 + carry;
        most = larger(most, cell);
        CELL(out, m) = cell;
        carry = x * turn * e1;
    };
    int m = 0;
    for (; AHEAD > 1 && m + AHEAD <= width; m += AHEAD) {
        REAL x[AHEAD], turn[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) x[i] = CELL(in, m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) one(m + i, x[i], turn[i]);
    }
    for (; m < width; m++) one(m, CELL(in, m), __ldg(turns + m));
    CELL(out, width) = carry;
    return larger(most, carry);
}

// The same with one open group: `in_1` and `out_1` are the cells with a label of the group.
template <int STRIDE, int AHEAD>
__device__ __forceinline__ REAL join_dual(const Memory &memory, const REAL *turns, const REAL *in, const REAL *in_1, REAL *out,
                                          REAL *out_1, int width, const Dual &e) {
    REAL carry_0 = 0, carry_1 = 0, most = 0;
    auto one = [&](int m, REAL x0, REAL x1, REAL turn) {
        REAL cell_0 = x0 * e.a0 + carry_0, cell_1 = x1 * e.a0 + (x0 * e.b0 + carry_1);
        most = larger(most, larger(cell_0, cell_1));
        CELL(out, m) = cell_0;
        CELL(out_1, m) = cell_1;
        x0 *= turn;
        x1 *= turn;
        carry_0 = x0 * e.a1;
        carry_1 = x1 * e.a1 + x0 * e.b1;
    };
    int m = 0;
    for (; AHEAD > 1 && m + AHEAD <= width; m += AHEAD) {
        REAL x0[AHEAD], x1[AHEAD], turn[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            x0[i] = CELL(in, m + i), x1[i] = CELL(in_1, m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) one(m + i, x0[i], x1[i], turn[i]);
    }
    for (; m < width; m++) one(m, CELL(in, m), CELL(in_1, m), __ldg(turns + m));
    CELL(out, width) = carry_0;
    CELL(out_1, width) = carry_1;
    return larger(most, larger(carry_0, carry_1));
}

// `forward` for plain units: no steps are read, and the next child's messages are loaded while the cells of this one are
// computed.
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
        REAL most = join_plain<STRIDE, MANY>(memory, turns, in, out, j + 1, off * scale, on * scale);
        if (j + 1 < size) scale = power_of_two(most, *exponents);
        in = out;
        out += (j + 2) * SPAN;
        off = next_off;
        on = next_on;
    }
}

// The same with one open group.
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
        REAL most = join_dual<STRIDE, MANY>(memory, turns, in, in + (j + 1) * SPAN, out, out + (j + 2) * SPAN, j + 1,
                                      times(e, scale));
        if (j + 1 < size) scale = power_of_two(most, *exponents);
        in = out;
        out += 2 * (j + 2) * SPAN;
        e = next;
    }
}

// One more child by the list of moves between layers.
template <int STRIDE>
__device__ __forceinline__ REAL join_moves(const Forest &f, const Memory &memory, const Unit &u, const Step &s, int y,
                                           const REAL *in, REAL *out, REAL scale) {
    const REAL *turns = f.weights + u.turns, *message = memory.numbers + s.message * BLOCK_ROWS;
    REAL most = 0;
    for (int m = 0; m < s.layers * s.width; m++) CELL(out, m) = 0;
    for (int at = s.moves_from; at < s.moves_to; at++) {
        uchar4 move = __ldg(f.moves + at);
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
    return most;
}

// A child's messages as one stream reads them: below a parent that is off, its edge may cost something.
__device__ __forceinline__ Dual scaled_messages(const Forest &f, const Unit &u, const Step &s, const REAL *message, int y,
                                                REAL scale) {
    if (s.kind == PLAIN_STEP) return {AT(message, 0) * scale, child_on(f, u, s, y, AT(message, 1) * scale), 0, 0};
    return {AT(message, 0) * scale, child_on(f, u, s, y, AT(message, 2) * scale), AT(message, 1) * scale,
            child_on(f, u, s, y, AT(message, 3) * scale)};
}

// All cells of a unit, step after step, and the scale that each step applies.
template <int STRIDE>
__device__ __forceinline__ void forward(const Forest &f, const Memory &memory, const Unit &u, REAL *cells, REAL *scales,
                                        int *exponents) {
    if (u.form == PLAIN) return forward_plain<STRIDE>(f, memory, u, cells, scales, exponents);
#if MAX_LAYERS > 1
    if (u.form == DUAL) return forward_dual<STRIDE>(f, memory, u, cells, scales, exponents);
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
            if (s.kind == PLAIN_STEP) {
                Dual e = scaled_messages(f, u, s, message, y, scale);
                most = larger(most, join_plain<STRIDE, 1>(memory, turns, in, out, s.input_width, e.a0, e.a1));
#if MAX_LAYERS > 1
            } else if (s.kind == DUAL_STEP) {
                Dual e = scaled_messages(f, u, s, message, y, scale);
                most = larger(most, join_dual<STRIDE, 1>(memory, turns, in, in + s.input_width * SPAN, out,
                                                      out + s.width * SPAN, s.input_width, e));
#endif
            } else most = larger(most, join_moves<STRIDE>(f, memory, u, s, y, in, out, scale));
        }
        if (at + 1 < u.steps_to) scale = power_of_two(most, *exponents);
    }
}

// The totals of a unit for a parent that is off and on, by layer.
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

// The product of totals up to a unit, from the product before it.
__device__ __forceinline__ void multiply(const Forest &f, const Memory &memory, int index, Row &row) {
    const Unit u = fetch(f.units, index), before = fetch(f.units, index - 1);
    REAL most = 0;
    for (int i = 0; i < 2 * u.layers; i++) most = larger(most, AT(memory.totals, u.total + i));
    REAL scale = power_of_two(most, row.exponents);
    for (int i = 0; i < 2 * u.product_layers; i++) AT(memory.totals, u.product + i) = 0;
    for (int y = 0; y < 2; y++)
        for (int at = u.moves_from; at < u.moves_to; at++) {
            uchar4 move = __ldg(f.moves + at);
            REAL x = AT(memory.totals, before.product + y * before.product_layers + move.x);
            REAL total = AT(memory.totals, u.total + y * u.layers + move.y) * scale;
            AT(memory.totals, u.product + y * u.product_layers + move.z) += x * total;
        }
    most = 0;
    for (int i = 0; i < 2 * u.product_layers; i++) most = larger(most, AT(memory.totals, u.product + i));
    // Two scales: both a total and a product may be far from 1.
    REAL again = power_of_two(most, row.exponents);
    for (int i = 0; i < 2 * u.product_layers; i++) AT(memory.totals, u.product + i) *= again;
    AT(memory.scales, u.scales) = scale;
    AT(memory.scales, u.scales + 1) = again;
}
