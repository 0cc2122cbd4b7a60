// Labels whose children are one counted set of few, which most labels are: all cells in registers, with sizes known to the
// compiler. K children, L layers (2 where a one-of group is open below: messages multiply like dual numbers). In single
// precision only: in doubles the cells would not fit the registers, and the kernel would take long to compile.

#ifndef DOUBLE

template <int K, int L> struct Children {
    // Messages off and on by layer, and the scale that each step applies.
    REAL off[K][L], on[K][L], scale[K];
    int2 entry[K];
};

template <int K, int L, bool INSIDE>
__device__ __forceinline__ void read_children(const Forest &f, const Memory &memory, const Parent &p,
                                              Children<K, L> &c) {
    // All at once, because each read takes long.
#pragma unroll
    for (int j = 0; j < K; j++)
        if (L > 1 || !INSIDE) c.entry[j] = __ldg(f.children + p.children + j);
#pragma unroll
    for (int j = 0; j < K; j++) {
        if (L == 1) {
            // Siblings lie side by side.
            c.off[j][0] = AT(memory.numbers, p.first_message + 2 * j);
            c.on[j][0] = AT(memory.numbers, p.first_message + 2 * j + 1);
        } else {
            Dual e = read_dual(memory, c.entry[j]);
            c.off[j][0] = e.a0;
            c.on[j][0] = e.a1;
            c.off[j][L - 1] = e.b0;
            c.on[j][L - 1] = e.b1;
        }
    }
}

// One more child, from `in` (counts 0..J) to `out` (counts 0..J + 1); returns the largest.
template <int K, int L>
__device__ __forceinline__ REAL join(const REAL (&in)[L][K + 1], REAL (&out)[L][K + 1], const Children<K, L> &c, int j,
                                     REAL scale, const REAL *turns) {
    REAL most = 0;
    REAL a0 = c.off[j][0] * scale, a1 = c.on[j][0] * scale;
    REAL b0 = c.off[j][L - 1] * scale, b1 = c.on[j][L - 1] * scale;
#pragma unroll
    for (int m = 0; m <= K; m++) {
        if (m > j + 1) continue;
        REAL x = m <= j ? in[0][m] : REAL(0);
        REAL below = m > 0 ? in[0][m - 1] * __ldg(turns + m - 1) : REAL(0);
        out[0][m] = x * a0 + below * a1;
        most = larger(most, out[0][m]);
        if (L == 2) {
            REAL x1 = m <= j ? in[L - 1][m] : REAL(0);
            REAL below_1 = m > 0 ? in[L - 1][m - 1] * __ldg(turns + m - 1) : REAL(0);
            out[L - 1][m] = x1 * a0 + x * b0 + (below_1 * a1 + below * b1);
            most = larger(most, out[L - 1][m]);
        }
    }
    return most;
}

template <int K, int L>
__device__ __forceinline__ void inside_simple(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    Children<K, L> c;
    read_children<K, L, true>(f, memory, p, c);
    const REAL *turns = f.weights + p.turns, *falls = f.weights + p.falls;
    REAL low = AT(memory.numbers, p.weight), high = AT(memory.numbers, p.weight + 1);
    REAL cells[L][K + 1], next[L][K + 1], scale = 1;
    cells[0][0] = 1;
    cells[L - 1][0] = L == 1 ? 1 : 0;
#pragma unroll
    for (int j = 0; j < K; j++) {
        REAL most = join<K, L>(cells, next, c, j, scale, turns);
        if (j + 1 < K) scale = power_of_two(most, row.exponents);
#pragma unroll
        for (int i = 0; i < L; i++)
#pragma unroll
            for (int m = 0; m <= K; m++)
                if (m <= j + 1) cells[i][m] = next[i][m];
    }
    REAL message[2 * L], most = 0;
#pragma unroll
    for (int i = 0; i < L; i++) {
        REAL off = 0, on = 0;
#pragma unroll
        for (int m = 0; m <= K; m++) {
            on += cells[i][m];
            off += cells[i][m] * __ldg(falls + m);
        }
        message[i] = off * low;
        message[L + i] = on * high;
        most = larger(most, larger(message[i], message[L + i]));
    }
    scale = power_of_two(most, row.exponents);
#pragma unroll
    for (int i = 0; i < 2 * L; i++) AT(memory.numbers, p.message + i) = message[i] * scale;
    AT(memory.numbers, p.weight) = low * scale;
    AT(memory.numbers, p.weight + 1) = high * scale;
}

template <int K, int L>
__device__ __forceinline__ void outside_simple(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    Children<K, L> c;
    read_children<K, L, false>(f, memory, p, c);
    const REAL *turns = f.weights + p.turns, *falls = f.weights + p.falls;
    REAL shares[2 * L];
#pragma unroll
    for (int i = 0; i < 2 * L; i++) shares[i] = AT(memory.numbers, p.message + i);
    // before[j]: the cells before child j.
    REAL before[K][L][K + 1], cells[L][K + 1];
    int counted = 0;
    before[0][0][0] = 1;
    before[0][L - 1][0] = L == 1 ? 1 : 0;
    c.scale[0] = 1;
#pragma unroll
    for (int j = 0; j + 1 < K; j++) {
        REAL most = join<K, L>(before[j], before[j + 1], c, j, c.scale[j], turns);
        c.scale[j + 1] = power_of_two(most, counted);
    }
#pragma unroll
    for (int i = 0; i < L; i++)
#pragma unroll
        for (int m = 0; m <= K; m++) cells[i][m] = shares[L + i] + shares[i] * __ldg(falls + m);
#pragma unroll
    for (int j = K - 1; j >= 0; j--) {
        REAL scale = c.scale[j], a0 = c.off[j][0] * scale, a1 = c.on[j][0] * scale;
        REAL b0 = c.off[j][L - 1] * scale, b1 = c.on[j][L - 1] * scale;
        REAL off[L], on[L];
#pragma unroll
        for (int i = 0; i < L; i++) off[i] = on[i] = 0;
#pragma unroll
        for (int m = 0; m < K; m++) {
            if (m > j) continue;
            REAL turned = cells[0][m + 1] * __ldg(turns + m), x = before[j][0][m];
            if (L == 1) {
                off[0] += x * cells[0][m];
                on[0] += x * turned;
                cells[0][m] = cells[0][m] * a0 + turned * a1;
            } else {
                REAL turned_1 = cells[L - 1][m + 1] * __ldg(turns + m), x1 = before[j][L - 1][m];
                off[0] += x1 * cells[L - 1][m] + x * cells[0][m];
                off[L - 1] += x * cells[L - 1][m];
                on[0] += x1 * turned_1 + x * turned;
                on[L - 1] += x * turned_1;
                cells[0][m] = cells[0][m] * a0 + (turned * a1 + (cells[L - 1][m] * b0 + turned_1 * b1));
                cells[L - 1][m] = cells[L - 1][m] * a0 + turned_1 * a1;
            }
        }
        Dual received = times({off[0], on[0], off[L - 1], on[L - 1]}, scale);
        if (L == 1) {
            REAL high = received.a1 * c.on[j][0], marginal = marginal_of(high, received.a0 * c.off[j][0] + high, row);
            give_plain(memory, p.first_message + 2 * j, c.entry[j].y, received.a0, received.a1, marginal);
        } else give_dual(memory, c.entry[j], received, {c.off[j][0], c.on[j][0], c.off[j][L - 1], c.on[j][L - 1]}, row);
    }
}

// Up to IN_REGISTERS_1 children with one layer and IN_REGISTERS_2 with two. More would not fit the registers. Where lanes have
// different labels, larger families go through large.cu, which is less code to compile and to load.
#define SIZE(pass, size, layers)                                             \
    case size:                                                               \
        if constexpr (size <= IN_REGISTERS_##layers) return pass<size, layers>(f, memory, p, row); \
        break;

#define SIMPLE(pass, layers)                                                 \
    switch (p.size) {                                                        \
        SIZE(pass, 1, layers)                                                \
        SIZE(pass, 2, layers)                                                \
        SIZE(pass, 3, layers)                                                \
        SIZE(pass, 4, layers)                                                \
        SIZE(pass, 5, layers)                                                \
        SIZE(pass, 6, layers)                                                \
        SIZE(pass, 7, layers)                                                \
        SIZE(pass, 8, layers)                                                \
    }

#endif

__device__ __forceinline__ void inside_any(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
#ifndef DOUBLE
    if (p.simple == 1) SIMPLE(inside_simple, 1)
#if MAX_LAYERS > 1
    if (p.simple == 2) SIMPLE(inside_simple, 2)
#endif
#endif
    inside_parent(f, memory, p, row);
}

__device__ __forceinline__ void outside_any(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
#ifndef DOUBLE
    if (p.simple == 1) SIMPLE(outside_simple, 1)
#if MAX_LAYERS > 1
    if (p.simple == 2) SIMPLE(outside_simple, 2)
#endif
#endif
    outside_parent(f, memory, p, row);
}
