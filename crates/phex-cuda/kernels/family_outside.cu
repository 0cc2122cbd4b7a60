// The outside pass of `family`: the inside pass transposed, step by step. With the root's message set to the inverse of
// the root's value, outside · inside sums to 1 at every label. Where it does not, a number left the range of the type.

// Transposes `multiply`.
__device__ __forceinline__ void divide(const Forest &f, const Memory &memory, int index) {
    const Unit u = fetch(f.units, index), before = fetch(f.units, index - 1);
    REAL scale = AT(memory.scales, u.scales), again = AT(memory.scales, u.scales + 1);
    for (int i = 0; i < 2 * u.layers; i++) AT(memory.shares, u.total + i) = 0;
    for (int i = 0; i < 2 * before.product_layers; i++) AT(memory.shares, before.product + i) = 0;
    for (int y = 0; y < 2; y++)
        for (int way = u.moves_from; way < u.moves_to; way++) {
            uchar4 move = __ldg(f.moves + way);
            int a = before.product + y * before.product_layers + move.x, b = u.total + y * u.layers + move.y;
            REAL share = AT(memory.shares, u.product + y * u.product_layers + move.z) * again;
            AT(memory.shares, b) += share * (AT(memory.totals, a) * scale);
            AT(memory.shares, a) += share * (AT(memory.totals, b) * scale);
        }
}

// B at the end of a unit: the share of each count, and whether mass sits where a weight had to be clamped.
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

// What a child receives from above: its marginal, and where it has children, its message with its own weights, which
// lie where the marginal goes. 1 / y = 2 - y up to (1 - y)^2, which the check keeps below rounding; rounding may go beyond 1.
__device__ __forceinline__ REAL marginal_of(REAL high, REAL total, Row &row) {
    if (!(absolute(total - 1) <= TOLERANCE)) row.suspect |= 1;
    REAL p = high * (1 + (1 - total));
    return p > 1 ? REAL(1) : p;
}

__device__ __forceinline__ void give_plain(const Memory &memory, int message, int weight, REAL off, REAL on, REAL marginal) {
    int value = weight >= 0 ? weight : message;
    if (weight >= 0) {
        AT(memory.numbers, message) = off * AT(memory.numbers, weight);
        AT(memory.numbers, message + 1) = on * AT(memory.numbers, weight + 1);
    }
    AT(memory.numbers, value) = marginal;
}

// `with`: the probability that a label of the open group is on below the child, or is the child.
__device__ __forceinline__ void give_dual(const Memory &memory, int2 child, REAL off_0, REAL off_1, REAL on_0, REAL on_1,
                                          REAL marginal, REAL with) {
    bool open = child.x & OPEN;
    int message = child.x & ~OPEN;
    if (child.y == FOLDED) AT(memory.numbers, message + 1) = with;
    if (child.y >= 0) {
        REAL low = AT(memory.numbers, child.y), high = AT(memory.numbers, child.y + 1);
        AT(memory.numbers, message) = off_0 * low;
        AT(memory.numbers, message + (open ? 2 : 1)) = on_0 * high;
        if (open) {
            AT(memory.numbers, message + 1) = off_1 * low;
            AT(memory.numbers, message + 3) = on_1 * high;
        }
    }
    AT(memory.numbers, child.y >= 0 ? child.y : message) = marginal;
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
        REAL scale = CELL(scales, j), e0 = off_message * scale, e1 = on_message * scale;
        REAL off = 0, on = 0, now = CELL(b, 0);
        auto one = [&](int m, REAL after, REAL x, REAL turn) {
            REAL turned = after * turn;
            off += x * now;
            on += x * turned;
            CELL(b, m) = now * e0 + turned * e1;
            now = after;
        };
        int m = 0;
        for (; m + AHEAD <= j + 1; m += AHEAD) {
            REAL after[AHEAD], x[AHEAD], turn[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                after[i] = CELL(b, m + 1 + i), x[i] = CELL(before, m + i), turn[i] = __ldg(turns + m + i);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) one(m + i, after[i], x[i], turn[i]);
        }
        for (; m <= j; m++) one(m, CELL(b, m + 1), CELL(before, m), __ldg(turns + m));
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
    REAL *b_1 = b + u.width * SPAN;
    for (int j = last; j >= 0; j--) {
        int2 next_child = __ldg(f.children + u.steps_from + (j > 0 ? j - 1 : 0));
        Dual next = read_dual(memory, next_child);
        REAL scale = CELL(scales, j), a0 = e.a0 * scale, a1 = e.a1 * scale, b0 = e.b0 * scale, b1 = e.b1 * scale;
        REAL off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0, now_0 = CELL(b, 0), now_1 = CELL(b_1, 0);
        auto one = [&](int m, REAL after_0, REAL after_1, REAL x0, REAL x1, REAL turn) {
            REAL t0 = after_0 * turn, t1 = after_1 * turn;
            off_0 += x1 * now_1 + x0 * now_0;
            off_1 += x0 * now_1;
            on_0 += x1 * t1 + x0 * t0;
            on_1 += x0 * t1;
            CELL(b, m) = now_0 * a0 + (t0 * a1 + (now_1 * b0 + t1 * b1));
            CELL(b_1, m) = now_1 * a0 + t1 * a1;
            now_0 = after_0;
            now_1 = after_1;
        };
        int m = 0;
        for (; m + AHEAD <= j + 1; m += AHEAD) {
            REAL after_0[AHEAD], after_1[AHEAD], x0[AHEAD], x1[AHEAD], turn[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                after_0[i] = CELL(b, m + 1 + i), after_1[i] = CELL(b_1, m + 1 + i), turn[i] = __ldg(turns + m + i);
                x0[i] = CELL(before, m + i), x1[i] = CELL(before, j + 1 + m + i);
            }
#pragma unroll
            for (int i = 0; i < AHEAD; i++) one(m + i, after_0[i], after_1[i], x0[i], x1[i], turn[i]);
        }
        for (; m <= j; m++)
            one(m, CELL(b, m + 1), CELL(b_1, m + 1), CELL(before, m), CELL(before, j + 1 + m), __ldg(turns + m));
        off_0 *= scale;
        off_1 *= scale;
        on_0 *= scale;
        on_1 *= scale;
        REAL high = on_0 * e.a1 + on_1 * e.b1, total = off_0 * e.a0 + off_1 * e.b0 + high;
        give_dual(memory, child, off_0, off_1, on_0, on_1, marginal_of(high, total, row), off_1 * e.b0 + on_1 * e.b1);
        before -= 2 * j * SPAN;
        child = next_child;
        e = next;
    }
}

template <int STRIDE>
__device__ __forceinline__ void outside_unit(const Forest &f, const Memory &memory, const Unit &u, REAL *cells, Row &row) {
    REAL *scales = cells + u.cells * SPAN;
    REAL *here = scales + (u.steps_to - u.steps_from) * SPAN;
    int stride = u.most_layers * u.width, counted = 0;
    REAL *next = here + (u.shared ? 1 : 2) * stride * SPAN;
    forward<STRIDE>(f, memory, u, cells, scales, &counted);
    outside_ends<STRIDE>(f, memory, u, cells, here, row);
    if (u.plain == 1) return backward_plain<STRIDE>(f, memory, u, cells, scales, here, row);
#if MAX_LAYERS > 1
    if (u.plain == 2) return backward_dual<STRIDE>(f, memory, u, cells, scales, here, row);
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
            if (s.kind == 0) {
                REAL e0 = AT(message, 0) * scale;
                REAL e1 = child_on(f, u, s, y, AT(message, 1) * scale);
                REAL off = 0, on = 0, now = CELL(b, 0);
#pragma unroll 4
                for (int m = 0; m < s.input_width; m++) {
                    REAL after = CELL(b, m + 1), x = CELL(before, m);
                    REAL turned = after * __ldg(turns + m);
                    off += x * now;
                    on += x * turned;
                    CELL(b, m) = now * e0 + turned * e1;
                    now = after;
                }
                received[0] += off * scale;
                received[1] += child_on(f, u, s, y, on * scale);
            } else if (s.kind == 1) {
                REAL a0 = AT(message, 0) * scale, c0 = AT(message, 1) * scale;
                REAL a1 = child_on(f, u, s, y, AT(message, 2) * scale);
                REAL c1 = child_on(f, u, s, y, AT(message, 3) * scale);
                const REAL *before_1 = before + s.input_width * SPAN;
                REAL *b_1 = b + u.width * SPAN;
                REAL off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0, now_0 = CELL(b, 0), now_1 = CELL(b_1, 0);
#pragma unroll 2
                for (int m = 0; m < s.input_width; m++) {
                    REAL after_0 = CELL(b, m + 1), after_1 = CELL(b_1, m + 1), x0 = CELL(before, m), x1 = CELL(before_1, m);
                    REAL t0 = after_0 * __ldg(turns + m), t1 = after_1 * __ldg(turns + m);
                    off_0 += x1 * now_1 + x0 * now_0;
                    off_1 += x0 * now_1;
                    on_0 += x1 * t1 + x0 * t0;
                    on_1 += x0 * t1;
                    CELL(b, m) = now_0 * a0 + (t0 * a1 + (now_1 * c0 + t1 * c1));
                    CELL(b_1, m) = now_1 * a0 + t1 * a1;
                    now_0 = after_0;
                    now_1 = after_1;
                }
                received[0] += off_0 * scale;
                received[1] += off_1 * scale;
#if MAX_LAYERS > 1
                received[2] += child_on(f, u, s, y, on_0 * scale);
                received[3] += child_on(f, u, s, y, on_1 * scale);
#endif
            } else {
                REAL *target = next + stream * stride * SPAN;
                for (int m = 0; m < stride; m++) CELL(target, m) = 0;
                for (int way = s.moves_from; way < s.moves_to; way++) {
                    uchar4 move = __ldg(f.moves + way);
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
        }
        REAL off = 0, on = 0;
#if MAX_LAYERS > 1
        if (s.folded) {
            REAL with = received[1] * AT(message, 1) + received[3] * AT(message, 3);
            // The check below reads what this would overwrite.
            AT(memory.numbers, s.value) = marginal_of(received[2] * AT(message, 2) + received[3] * AT(message, 3),
                                                      received[0] * AT(message, 0) + received[2] * AT(message, 2) + with, row);
            AT(memory.numbers, s.message + 1) = with;
            continue;
        }
#endif
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
