// The outside pass of `family`: the inside pass transposed, step by step. With the root's message set to the inverse of
// the root's value, outside · inside sums to 1 at every label. Where it does not, a number left the range of the type.

// Transposes `multiply`.
__device__ __forceinline__ void divide(const Forest &f, const Memory &memory, int index) {
    const Unit u = fetch(f.units, index), before = fetch(f.units, index - 1);
    REAL scale = AT(memory.scales, 2 * index), again = AT(memory.scales, 2 * index + 1);
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

// The way back through a plain unit: see `forward_plain`.
template <int STRIDE>
__device__ __forceinline__ void backward_plain(const Forest &f, const Memory &memory, const Unit &u, const REAL *cells,
                                               const REAL *scales, REAL *b, Row &row) {
    const REAL *turns = f.weights + u.turns, *message = memory.inside + u.first_message * BLOCK_ROWS;
    int last = u.steps_to - u.steps_from - 1;
    int4 child = __ldg(f.children + u.steps_from + last);
    REAL off_message = AT(message, 2 * last), on_message = AT(message, 2 * last + 1);
    // Child j found cells 0..j: they start behind those of the children before it.
    const REAL *before = cells + last * (last + 1) / 2 * SPAN;
    for (int j = last; j >= 0; j--) {
        int next = j > 0 ? j - 1 : 0;
        int4 next_child = __ldg(f.children + u.steps_from + next);
        REAL next_off = AT(message, 2 * next), next_on = AT(message, 2 * next + 1);
        REAL scale = CELL(scales, j), e0 = off_message * scale, e1 = on_message * scale;
        REAL off = 0, on = 0, now = CELL(b, 0);
#pragma unroll 4
        for (int m = 0; m <= j; m++) {
            REAL after = CELL(b, m + 1), x = CELL(before, m);
            REAL turned = after * __ldg(turns + m);
            off += x * now;
            on += x * turned;
            CELL(b, m) = now * e0 + turned * e1;
            now = after;
        }
        off *= scale;
        on *= scale;
        if (child.y >= 0) {
            AT(memory.outside, child.y) = off;
            AT(memory.outside, child.y + 1) = on;
        }
        REAL high = on * on_message, total = off * off_message + high;
        if (!(absolute(total - 1) <= TOLERANCE)) row.suspect |= 1;
        REAL p = high * (1 + (1 - total));
        AT(memory.values, child.x) = p > 1 ? REAL(1) : p;
        before -= j * SPAN;
        child = next_child;
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
    int4 child = __ldg(f.children + u.steps_from + last);
    Dual e = read_dual(memory, child);
    const REAL *before = cells + last * (last + 1) * SPAN;
    REAL *b_1 = b + u.width * SPAN;
    for (int j = last; j >= 0; j--) {
        int4 next_child = __ldg(f.children + u.steps_from + (j > 0 ? j - 1 : 0));
        Dual next = read_dual(memory, next_child);
        REAL scale = CELL(scales, j), a0 = e.a0 * scale, a1 = e.a1 * scale, b0 = e.b0 * scale, b1 = e.b1 * scale;
        REAL off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0, now_0 = CELL(b, 0), now_1 = CELL(b_1, 0);
#pragma unroll 2
        for (int m = 0; m <= j; m++) {
            REAL after_0 = CELL(b, m + 1), after_1 = CELL(b_1, m + 1), turn = __ldg(turns + m);
            REAL x0 = CELL(before, m), x1 = CELL(before, j + 1 + m);
            REAL t0 = after_0 * turn, t1 = after_1 * turn;
            off_0 += x1 * now_1 + x0 * now_0;
            off_1 += x0 * now_1;
            on_0 += x1 * t1 + x0 * t0;
            on_1 += x0 * t1;
            CELL(b, m) = now_0 * a0 + (t0 * a1 + (now_1 * b0 + t1 * b1));
            CELL(b_1, m) = now_1 * a0 + t1 * a1;
            now_0 = after_0;
            now_1 = after_1;
        }
        off_0 *= scale;
        off_1 *= scale;
        on_0 *= scale;
        on_1 *= scale;
        if (child.y >= 0) {
            AT(memory.outside, child.y) = off_0;
            AT(memory.outside, child.y + child.w) = on_0;
            if (child.w == 2) {
                AT(memory.outside, child.y + 1) = off_1;
                AT(memory.outside, child.y + 3) = on_1;
            }
        }
        REAL high = on_0 * e.a1 + on_1 * e.b1, total = off_0 * e.a0 + off_1 * e.b0 + high;
        if (!(absolute(total - 1) <= TOLERANCE)) row.suspect |= 1;
        REAL p = high * (1 + (1 - total));
        AT(memory.values, child.x) = p > 1 ? REAL(1) : p;
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
        const REAL *message = memory.inside + s.message * BLOCK_ROWS;
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
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++) {
            if (i >= 2 * s.child_layers) continue;
            REAL share = received[i] * AT(message, i);
            if (i < s.child_layers) off += share;
            else on += share;
            if (s.outside >= 0) AT(memory.outside, s.outside + i) = received[i];
        }
        REAL total = off + on;
        if (!(absolute(total - 1) <= TOLERANCE)) row.suspect |= 1;
        // 1 / y = 2 - y up to (1 - y)^2, which the check keeps below rounding. Rounding may go beyond 1.
        REAL p = on * (1 + (1 - total));
        AT(memory.values, s.label) = p > 1 ? REAL(1) : p;
    }
}

__device__ __forceinline__ void outside_unit(const Forest &f, const Memory &memory, const Unit &u, Row &row) {
    REAL *eighth = memory.near - memory.lane + memory.lane % 8;
#ifdef DOUBLE
    // Made once for all of its memories: doubles are for rows that are done again, and the compiler takes its time.
    int mode = GROUPS > 1 ? memory.mode : u.needs <= memory.lines ? NEAR : u.needs <= 4 * memory.lines ? BY_EIGHT : FAR;
    int parts = GROUPS == 1 && mode == BY_EIGHT ? 4 : 1;
    Memory own = memory;
    own.stride = mode == BY_EIGHT ? 8 : LANES;
    for (int part = 0; part < parts; part++) {
        REAL *cells = mode == NEAR ? memory.near : mode == BY_EIGHT ? eighth : memory.far;
        if (parts == 1 || memory.lane / 8 == part) outside_unit<0>(f, own, u, cells, row);
        if (parts > 1) __syncwarp();
    }
#elif GROUPS > 1
    // The round has eight lanes here at a time, if any: see `visit_level`. Few labels are not near.
    Memory own = memory;
    own.stride = memory.mode == BY_EIGHT ? 8 : LANES;
    if (memory.mode == NEAR) outside_unit<LANES>(f, memory, u, memory.near, row);
    else outside_unit<0>(f, own, u, memory.mode == BY_EIGHT ? eighth : memory.far, row);
#else
    if (u.needs <= memory.lines) outside_unit<LANES>(f, memory, u, memory.near, row);
    else if (u.needs <= 4 * memory.lines) {
        for (int part = 0; part < 4; part++) {
            if (memory.lane / 8 == part) outside_unit<8>(f, memory, u, eighth, row);
            __syncwarp();
        }
    } else outside_unit<LANES>(f, memory, u, memory.far, row);
#endif
}

__device__ __forceinline__ void outside_parent(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    const Unit last = fetch(f.units, p.units_to - 1);
    REAL off = AT(memory.inside, p.weight), on = AT(memory.inside, p.weight + 1);
    if (p.label < 0) {
        AT(memory.outside, p.outside) = 0;
        AT(memory.outside, p.outside + 1) = 1 / AT(memory.inside, f.root + 1);
    }
    if (p.same_layers) {
        for (int i = 0; i < 2 * p.layers; i++)
            AT(memory.shares, last.product + i) = AT(memory.outside, p.outside + i) * (i < p.layers ? off : on);
    } else {
        for (int i = 0; i < 2 * last.product_layers; i++) AT(memory.shares, last.product + i) = 0;
        for (int way = p.own_from; way < p.own_to; way++) {
            uchar4 move = __ldg(f.moves + way);
            REAL from = AT(memory.outside, p.outside + move.y * p.layers + move.z) * (move.y ? on : off);
            AT(memory.shares, last.product + move.y * last.product_layers + move.x) += from;
        }
    }
    for (int index = p.units_to - 1; index >= p.units_from; index--) {
        if (index > p.units_from) divide(f, memory, index);
        outside_unit(f, memory, fetch(f.units, index), row);
    }
}
