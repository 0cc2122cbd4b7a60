// The outside pass of `family`: the inside pass transposed, step by step. The root's message is the inverse of the root's
// value, so that outside times inside sums to 1 at every label. Where it does not, a number has left the range of the type.

// Transposes `multiply`.
__device__ __forceinline__ void divide(const Forest &f, const Memory &memory, int index) {
    const Unit u = fetch(f.units, index), before = fetch(f.units, index - 1);
    REAL scale = AT(memory.scales, u.scales), again = AT(memory.scales, u.scales + 1);
    for (int i = 0; i < 2 * u.layers; i++) AT(memory.shares, u.total + i) = 0;
    for (int i = 0; i < 2 * before.product_layers; i++) AT(memory.shares, before.product + i) = 0;
    for (int y = 0; y < 2; y++)
        for (int at = u.moves_from; at < u.moves_to; at++) {
            uchar4 move = __ldg(f.moves + at);
            int a = before.product + y * before.product_layers + move.x, b = u.total + y * u.layers + move.y;
            REAL share = AT(memory.shares, u.product + y * u.product_layers + move.z) * again;
            AT(memory.shares, b) += share * (AT(memory.totals, a) * scale);
            AT(memory.shares, a) += share * (AT(memory.totals, b) * scale);
        }
}

// B at the end of a unit: the share of each count. Also whether mass sits where a weight was cut off.
template <int STRIDE>
__device__ __forceinline__ void outside_ends(const Forest &f, const Memory &memory, const Unit &u, const REAL *cells,
                                             REAL *here, Row &row) {
    int output = u.cells - (u.shared ? 1 : 2) * u.layers * u.width;
    const REAL *falls = f.weights + u.falls;
    int stride = u.most_layers * u.width;
    REAL clamped = 0;
    for (int layer = 0; layer < u.layers; layer++) {
        REAL off = AT(memory.shares, u.total + layer), on = AT(memory.shares, u.total + u.layers + layer);
        for (int m = 0; m < u.width; m++) {
            REAL low = u.shared ? off * __ldg(falls + m) : off;
            int to = layer * u.width + m;
            CELL(here, (u.shared ? 0 : stride) + to) = u.shared ? on + low : on;
            if (!u.shared) CELL(here, to) = low;
            if (m >= u.clamped_turn || m >= u.clamped_fall) {
                REAL first = CELL(cells, output + layer * u.width + m);
                REAL second = u.shared ? first : CELL(cells, output + (u.layers + layer) * u.width + m);
                if (m >= u.clamped_turn) clamped += on * second + low * first;
                else if (u.shared) clamped += low * first;
            }
        }
    }
    if (!(clamped <= CLAMPED)) row.suspect |= 1;
}

// A child's marginal, from its shares on and in total. 1 / total is 2 - total up to (1 - total)^2, which the check keeps below
// rounding; rounding may lead beyond 1.
__device__ __forceinline__ REAL marginal_of(REAL high, REAL total, Row &row) {
    if (!(absolute(total - 1) <= TOLERANCE)) row.suspect |= 1;
    REAL p = high * (1 + (1 - total));
    return p > 1 ? REAL(1) : p;
}

// Gives a child its marginal and, if it has children, its message from above with its own weights. Its weights lie where the
// marginal goes.
__device__ __forceinline__ void give_plain(const Memory &memory, int message, int weight, REAL off, REAL on, REAL marginal) {
    int value = weight >= 0 ? weight : message;
    if (weight >= 0) {
        AT(memory.numbers, message) = off * AT(memory.numbers, weight);
        AT(memory.numbers, message + 1) = on * AT(memory.numbers, weight + 1);
    }
    AT(memory.numbers, value) = marginal;
}

// The same with one open group. `received` are the shares of the child's messages `e`; to a folded parent goes the
// probability that a label of the group is on below it, or is the child itself.
__device__ __forceinline__ void give_dual(const Memory &memory, int2 child, const Dual &received, const Dual &e, Row &row) {
    bool open = child.x & OPEN;
    int message = child.x & ~OPEN;
    REAL high = received.a1 * e.a1 + received.b1 * e.b1, total = received.a0 * e.a0 + received.b0 * e.b0 + high;
    REAL marginal = marginal_of(high, total, row);
    if (child.y == FOLDED) AT(memory.numbers, message + 1) = received.b0 * e.b0 + received.b1 * e.b1;
    if (child.y >= 0) {
        REAL low = AT(memory.numbers, child.y), high_weight = AT(memory.numbers, child.y + 1);
        AT(memory.numbers, message) = received.a0 * low;
        AT(memory.numbers, message + (open ? 2 : 1)) = received.a1 * high_weight;
        if (open) {
            AT(memory.numbers, message + 1) = received.b0 * low;
            AT(memory.numbers, message + 3) = received.b1 * high_weight;
        }
    }
    AT(memory.numbers, child.y >= 0 ? child.y : message) = marginal;
}

// Transposes `join_plain`: a child leaves the backward cells `b`, and receives its shares off and on.
template <int STRIDE, int AHEAD>
__device__ __forceinline__ void leave_plain(const Memory &memory, const REAL *turns, const REAL *before, REAL *b, int width,
                                            REAL e0, REAL e1, REAL &off, REAL &on) {
    REAL now = CELL(b, 0);
    off = on = 0;
    auto one = [&](int m, REAL after, REAL x, REAL turn) {
        REAL turned = after * turn;
        off += x * now;
        on += x * turned;
        CELL(b, m) = now * e0 + turned * e1;
        now = after;
    };
    int m = 0;
    for (; AHEAD > 1 && m + AHEAD <= width; m += AHEAD) {
        REAL after[AHEAD], x[AHEAD], turn[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            after[i] = CELL(b, m + 1 + i), x[i] = CELL(before, m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) one(m + i, after[i], x[i], turn[i]);
    }
    for (; m < width; m++) one(m, CELL(b, m + 1), CELL(before, m), __ldg(turns + m));
}

// Transposes `join_dual`. Returns the child's shares.
template <int STRIDE, int AHEAD>
__device__ __forceinline__ Dual leave_dual(const Memory &memory, const REAL *turns, const REAL *before, const REAL *before_1,
                                           REAL *b, REAL *b_1, int width, const Dual &e) {
    REAL off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0, now_0 = CELL(b, 0), now_1 = CELL(b_1, 0);
    auto one = [&](int m, REAL after_0, REAL after_1, REAL x0, REAL x1, REAL turn) {
        REAL t0 = after_0 * turn, t1 = after_1 * turn;
        off_0 += x1 * now_1 + x0 * now_0;
        off_1 += x0 * now_1;
        on_0 += x1 * t1 + x0 * t0;
        on_1 += x0 * t1;
        CELL(b, m) = now_0 * e.a0 + (t0 * e.a1 + (now_1 * e.b0 + t1 * e.b1));
        CELL(b_1, m) = now_1 * e.a0 + t1 * e.a1;
        now_0 = after_0;
        now_1 = after_1;
    };
    int m = 0;
    for (; AHEAD > 1 && m + AHEAD <= width; m += AHEAD) {
        REAL after_0[AHEAD], after_1[AHEAD], x0[AHEAD], x1[AHEAD], turn[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            after_0[i] = CELL(b, m + 1 + i), after_1[i] = CELL(b_1, m + 1 + i), turn[i] = __ldg(turns + m + i);
            x0[i] = CELL(before, m + i), x1[i] = CELL(before_1, m + i);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++) one(m + i, after_0[i], after_1[i], x0[i], x1[i], turn[i]);
    }
    for (; m < width; m++)
        one(m, CELL(b, m + 1), CELL(b_1, m + 1), CELL(before, m), CELL(before_1, m), __ldg(turns + m));
    return {off_0, on_0, off_1, on_1};
}

// The way back through a plain unit: see `forward_plain`.
template <int STRIDE>
__device__ __forceinline__ void backward_plain(const Forest &f, const Memory &memory, const Unit &u, const REAL *cells,
                                               const REAL *scales, REAL *b, Row &row) {
    const REAL *turns = f.weights + u.turns, *message = memory.numbers + u.first_message * BLOCK_ROWS;
    int last = u.steps_to - u.steps_from - 1;
    int weight = __ldg(f.children + u.steps_from + last).y;
    REAL off_message = AT(message, 2 * last), on_message = AT(message, 2 * last + 1);
    // Child j found cells 0..j: they start behind those of the children before it.
    const REAL *before = cells + last * (last + 1) / 2 * SPAN;
    for (int j = last; j >= 0; j--) {
        int next = j > 0 ? j - 1 : 0;
        int next_weight = __ldg(f.children + u.steps_from + next).y;
        REAL next_off = AT(message, 2 * next), next_on = AT(message, 2 * next + 1);
        REAL scale = CELL(scales, j), off, on;
        leave_plain<STRIDE, MANY>(memory, turns, before, b, j + 1, off_message * scale, on_message * scale, off, on);
        off *= scale;
        on *= scale;
        REAL high = on * on_message, marginal = marginal_of(high, off * off_message + high, row);
        give_plain(memory, u.first_message + 2 * j, weight, off, on, marginal);
        before -= j * SPAN;
        weight = next_weight;
        off_message = next_off;
        on_message = next_on;
    }
}

// The way back through a unit with one open group: see `forward_dual`.
template <int STRIDE>
__device__ __forceinline__ void backward_dual(const Forest &f, const Memory &memory, const Unit &u, const REAL *cells,
                                              const REAL *scales, REAL *b, Row &row) {
    const REAL *turns = f.weights + u.turns;
    int last = u.steps_to - u.steps_from - 1;
    int2 child = __ldg(f.children + u.steps_from + last);
    Dual e = read_dual(memory, child);
    const REAL *before = cells + last * (last + 1) * SPAN;
    for (int j = last; j >= 0; j--) {
        int2 next_child = __ldg(f.children + u.steps_from + (j > 0 ? j - 1 : 0));
        Dual next = read_dual(memory, next_child);
        REAL scale = CELL(scales, j);
        Dual received = leave_dual<STRIDE, MANY>(memory, turns, before, before + (j + 1) * SPAN, b, b + u.width * SPAN, j + 1,
                                           times(e, scale));
        give_dual(memory, child, times(received, scale), e, row);
        before -= 2 * j * SPAN;
        child = next_child;
        e = next;
    }
}

// Transposes `join_moves`. Backward cells go from `b` to `target` and back.
template <int STRIDE>
__device__ __forceinline__ void leave_moves(const Forest &f, const Memory &memory, const Unit &u, const Step &s, int y,
                                            const REAL *before, REAL *b, REAL *target, REAL scale,
                                            REAL (&received)[2 * MAX_LAYERS]) {
    const REAL *turns = f.weights + u.turns, *message = memory.numbers + s.message * BLOCK_ROWS;
    int stride = u.most_layers * u.width;
    for (int m = 0; m < stride; m++) CELL(target, m) = 0;
    for (int at = s.moves_from; at < s.moves_to; at++) {
        uchar4 move = __ldg(f.moves + at);
        REAL e0 = AT(message, move.y) * scale;
        REAL e1 = child_on(f, u, s, y, AT(message, s.child_layers + move.y) * scale);
        const REAL *from = before + move.x * s.input_width * SPAN;
        const REAL *above = b + move.z * u.width * SPAN;
        REAL *to = target + move.x * u.width * SPAN;
        REAL off = 0, on = 0;
        for (int m = 0; m < s.input_width; m++) {
            REAL x = CELL(from, m), now = CELL(above, m), turned = CELL(above, m + 1) * __ldg(turns + m);
            off += x * now;
            on += x * turned;
            CELL(to, m) += now * e0 + turned * e1;
        }
        on = child_on(f, u, s, y, on * scale);
#pragma unroll
        for (int i = 0; i < MAX_LAYERS; i++)
            if (i == move.y) received[i] += off * scale;
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++)
            if (i == s.child_layers + move.y) received[i] += on;
    }
    for (int m = 0; m < stride; m++) CELL(b, m) = CELL(target, m);
}

template <int STRIDE>
__device__ __forceinline__ void outside_unit(const Forest &f, const Memory &memory, const Unit &u, REAL *cells, Row &row) {
    REAL *scales = cells + u.cells * SPAN;
    REAL *here = scales + (u.steps_to - u.steps_from) * SPAN;
    int stride = u.most_layers * u.width, counted = 0;
    REAL *next = here + (u.shared ? 1 : 2) * stride * SPAN;
    forward<STRIDE>(f, memory, u, cells, scales, &counted);
    outside_ends<STRIDE>(f, memory, u, cells, here, row);
    if (u.form == PLAIN) return backward_plain<STRIDE>(f, memory, u, cells, scales, here, row);
#if MAX_LAYERS > 1
    if (u.form == DUAL) return backward_dual<STRIDE>(f, memory, u, cells, scales, here, row);
#endif
    const REAL *turns = f.weights + u.turns;
    for (int at = u.steps_to - 1; at >= u.steps_from; at--) {
        const Step s = fetch(f.steps, at);
        REAL scale = CELL(scales, at - u.steps_from);
        const REAL *message = memory.numbers + s.message * BLOCK_ROWS;
        REAL received[2 * MAX_LAYERS];
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++) received[i] = 0;
        for (int y = u.shared ? 1 : 0; y < 2; y++) {
            int stream = u.shared ? 0 : y;
            const REAL *before = cells + (s.input + stream * s.input_layers * s.input_width) * SPAN;
            REAL *b = here + stream * stride * SPAN;
            if (s.kind == PLAIN_STEP) {
                Dual e = scaled_messages(f, u, s, message, y, scale);
                REAL off, on;
                leave_plain<STRIDE, 1>(memory, turns, before, b, s.input_width, e.a0, e.a1, off, on);
                received[0] += off * scale;
                received[1] += child_on(f, u, s, y, on * scale);
#if MAX_LAYERS > 1
            } else if (s.kind == DUAL_STEP) {
                Dual e = scaled_messages(f, u, s, message, y, scale);
                Dual shares = leave_dual<STRIDE, 1>(memory, turns, before, before + s.input_width * SPAN, b, b + u.width * SPAN,
                                                 s.input_width, e);
                received[0] += shares.a0 * scale;
                received[1] += shares.b0 * scale;
                received[2] += child_on(f, u, s, y, shares.a1 * scale);
                received[3] += child_on(f, u, s, y, shares.b1 * scale);
#endif
            } else leave_moves<STRIDE>(f, memory, u, s, y, before, b, next + stream * stride * SPAN, scale, received);
        }
#if MAX_LAYERS > 1
        if (s.folded) {
            REAL with = received[1] * AT(message, 1) + received[3] * AT(message, 3);
            // All messages are read before the two places are written.
            AT(memory.numbers, s.value) = marginal_of(received[2] * AT(message, 2) + received[3] * AT(message, 3),
                                                      received[0] * AT(message, 0) + received[2] * AT(message, 2) + with, row);
            AT(memory.numbers, s.message + 1) = with;
            continue;
        }
#endif
        REAL off = 0, on = 0;
        REAL low = s.parent ? AT(memory.numbers, s.value) : REAL(0), high = s.parent ? AT(memory.numbers, s.value + 1) : REAL(0);
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++) {
            if (i >= 2 * s.child_layers) continue;
            REAL share = received[i] * AT(message, i);
            if (i < s.child_layers) off += share;
            else on += share;
            if (s.parent) AT(memory.numbers, s.message + i) = received[i] * (i < s.child_layers ? low : high);
        }
        AT(memory.numbers, s.value) = marginal_of(on, off + on, row);
    }
}
