// Large families where a block has few rows: one family per warp, its counts spread over the lanes of a row. Lane g of a row
// has the C counts from g C on, so that a step takes one number from the neighbouring lane. Sums go by fours of counts and
// then by pairs of those, whatever C and the lanes per row are: answers do not depend on the number of rows.
//
// The cells before each child are kept in fours, [four][row]: those before child j have j / 4 + 1 of them. On the way down
// the shares of each four replace it, and then each lane adds up the shares of its own children.
// Cost: a step of C cells per child on the way up, and two on the way down.

#if GROUPS > 1

// How many fours lie before those of child j.
__device__ __forceinline__ int fours_before(int j) {
    int q = j / 4;
    return 2 * q * (q + 1) + (j - 4 * q) * (q + 1);
}

// Whether a unit is large does not depend on what fits: otherwise the order of sums would depend on the number of rows.
__device__ __forceinline__ bool is_large(const Memory &memory, const Unit &u) {
    return memory.alone && u.large;
}

__device__ __forceinline__ float part(const float4 &four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// The sum over the lanes of a row, from the sums of each four of counts.
template <int C> __device__ __forceinline__ REAL over_counts(const REAL (&fours)[C / 4]) {
    REAL sum = fours[0];
    if (C == 8) sum += fours[C / 4 - 1];
#pragma unroll
    for (int step = BLOCK_ROWS; step < LANES; step *= 2) sum += __shfl_xor_sync(ALL_LANES, sum, step);
    return sum;
}

template <int C, int L> struct Large {
    // For the counts of this lane: cells by layer, and the weight of one more child that is on.
    REAL x[L][C], turn[C];
    int first, size;
    REAL *scales;
    float4 *fours;

    __device__ __forceinline__ Large(const Forest &f, const Memory &memory, const Unit &u)
        : first(group_of_lane(memory.lane) * C), size(u.steps_to - u.steps_from) {
        REAL *cells = memory.shared + memory.cells * LANES;
        fours = reinterpret_cast<float4 *>(cells) + row_of_lane(memory.lane);
        scales = cells + 4 * L * fours_before(size) * BLOCK_ROWS + row_of_lane(memory.lane);
#pragma unroll
        for (int i = 0; i < C; i++) turn[i] = first + i < size ? __ldg(f.weights + u.turns + first + i) : REAL(0);
    }

    __device__ __forceinline__ float4 *four(int j, int layer, int at) {
        return fours + (layer * fours_before(size) + fours_before(j) + first / 4 + at) * BLOCK_ROWS;
    }

    // All children join, one after another. With `keep`, the cells before each child are kept for the way down.
    __device__ __forceinline__ void forward(const Forest &f, const Memory &memory, const Unit &u, bool keep, int *exponents) {
        bool leftmost = first == 0;
#pragma unroll
        for (int i = 0; i < C; i++)
#pragma unroll
            for (int layer = 0; layer < L; layer++) x[layer][i] = layer == 0 && first + i == 0 ? 1 : 0;
        Dual e = child(f, memory, u, 0);
        REAL scale = 1;
        for (int j = 0; j < size; j++) {
            Dual next = child(f, memory, u, j + 1 < size ? j + 1 : 0);
            if (keep) {
                if (leftmost) AT(scales, j) = scale;
#pragma unroll
                for (int at = 0; at < C / 4; at++)
                    if (first + 4 * at <= j)
#pragma unroll
                        for (int layer = 0; layer < L; layer++) {
                            const REAL *some = x[layer] + 4 * at;
                            *four(j, layer, at) = make_float4(some[0], some[1], some[2], some[3]);
                        }
            }
            Dual d = times(e, scale);
            REAL turned[L], most[C];
#pragma unroll
            for (int layer = 0; layer < L; layer++) {
                turned[layer] = __shfl_up_sync(ALL_LANES, x[layer][C - 1] * turn[C - 1], BLOCK_ROWS);
                if (leftmost) turned[layer] = 0;
            }
#pragma unroll
            for (int i = 0; i < C; i++) {
                REAL x0 = x[0][i], x1 = x[L - 1][i];
                x[0][i] = x0 * d.a0 + turned[0] * d.a1;
                most[i] = x[0][i];
                if (L == 2) {
                    x[L - 1][i] = x1 * d.a0 + (x0 * d.b0 + (turned[L - 1] * d.a1 + turned[0] * d.b1));
                    most[i] = larger(most[i], x[L - 1][i]);
                    turned[L - 1] = x1 * turn[i];
                }
                turned[0] = x0 * turn[i];
            }
            // Only every other time: finding the largest takes long.
            scale = 1;
            if (j % 2 && j + 1 < size) {
#pragma unroll
                for (int half = C / 2; half > 0; half /= 2)
#pragma unroll
                    for (int i = 0; i < half; i++) most[i] = larger(most[i], most[i + half]);
#pragma unroll
                for (int step = BLOCK_ROWS; step < LANES; step *= 2)
                    most[0] = larger(most[0], __shfl_xor_sync(ALL_LANES, most[0], step));
                scale = power_of_two(most[0], *exponents);
            }
            e = next;
        }
        __syncwarp();
    }

    __device__ __forceinline__ Dual child(const Forest &f, const Memory &memory, const Unit &u, int j) {
        if (L == 2) return read_dual(memory, __ldg(f.children + u.steps_from + j));
        const REAL *message = memory.numbers + (u.first_message + 2 * j) * BLOCK_ROWS;
        return {AT(message, 0), AT(message, 1), 0, 0};
    }
};

template <int C, int L>
__device__ __forceinline__ void inside_large(const Forest &f, const Memory &memory, const Unit &u, Row &row) {
    Large<C, L> large(f, memory, u);
    int counted = 0;
    large.forward(f, memory, u, false, &counted);
    const REAL *falls = f.weights + u.falls;
    REAL fall[C];
#pragma unroll
    for (int i = 0; i < C; i++) fall[i] = large.first + i <= large.size ? __ldg(falls + large.first + i) : REAL(0);
#pragma unroll
    for (int layer = 0; layer < L; layer++) {
        REAL off[C / 4], on[C / 4];
#pragma unroll
        for (int at = 0; at < C / 4; at++) {
            off[at] = on[at] = 0;
#pragma unroll
            for (int i = 4 * at; i < 4 * at + 4; i++) {
                on[at] += large.x[layer][i];
                off[at] += large.x[layer][i] * fall[i];
            }
        }
        REAL off_all = over_counts<C>(off), on_all = over_counts<C>(on);
        if (large.first == 0) {
            AT(memory.totals, u.total + layer) = off_all;
            AT(memory.totals, u.total + L + layer) = on_all;
        }
    }
    if (large.first == 0) row.exponents += counted;
}

template <int C, int L>
__device__ __forceinline__ void outside_large(const Forest &f, const Memory &memory, const Unit &u, Row &row) {
    Large<C, L> large(f, memory, u);
    int counted = 0, last = large.size - 1;
    large.forward(f, memory, u, true, &counted);
    const REAL *falls = f.weights + u.falls;
    // B, and whether mass sits where a weight was cut off.
    REAL b[L][C], clamped = 0;
#pragma unroll
    for (int layer = 0; layer < L; layer++) {
        REAL off = AT(memory.shares, u.total + layer), on = AT(memory.shares, u.total + L + layer);
#pragma unroll
        for (int i = 0; i < C; i++) {
            int m = large.first + i;
            REAL low = m <= large.size ? off * __ldg(falls + m) : REAL(0);
            b[layer][i] = m <= large.size ? on + low : REAL(0);
            if (m >= u.clamped_turn) clamped += (on + low) * large.x[layer][i];
            else if (m >= u.clamped_fall) clamped += low * large.x[layer][i];
        }
    }
    if (!(clamped <= CLAMPED)) row.suspect |= 1;
    Dual e = large.child(f, memory, u, last);
    for (int j = last; j >= 0; j--) {
        Dual next = large.child(f, memory, u, j > 0 ? j - 1 : 0);
        Dual d = times(e, AT(large.scales, j));
        float4 kept[L][C / 4];
#pragma unroll
        for (int at = 0; at < C / 4; at++)
#pragma unroll
            for (int layer = 0; layer < L; layer++) {
                kept[layer][at] = make_float4(0, 0, 0, 0);
                if (large.first + 4 * at <= j) kept[layer][at] = *large.four(j, layer, at);
            }
        // B of the count after this lane's last.
        REAL behind[L];
#pragma unroll
        for (int layer = 0; layer < L; layer++) {
            behind[layer] = __shfl_down_sync(ALL_LANES, b[layer][0], BLOCK_ROWS);
            if (large.first + C == GROUPS * C) behind[layer] = 0;
        }
#pragma unroll
        for (int at = 0; at < C / 4; at++) {
            REAL off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int m = 4 * at + i;
                REAL x0 = part(kept[0][at], i), x1 = part(kept[L - 1][at], i), now_0 = b[0][m], now_1 = b[L - 1][m];
                REAL t0 = (m + 1 < C ? b[0][(m + 1) % C] : behind[0]) * large.turn[m];
                REAL t1 = (m + 1 < C ? b[L - 1][(m + 1) % C] : behind[L - 1]) * large.turn[m];
                // Counts beyond the children that are left have no share. They must not grow without bound.
                bool counts = large.first + m <= j;
                if (L == 1) {
                    off_0 += x0 * now_0;
                    on_0 += x0 * t0;
                    b[0][m] = counts ? now_0 * d.a0 + t0 * d.a1 : REAL(0);
                } else {
                    off_0 += x1 * now_1 + x0 * now_0;
                    off_1 += x0 * now_1;
                    on_0 += x1 * t1 + x0 * t0;
                    on_1 += x0 * t1;
                    b[0][m] = counts ? now_0 * d.a0 + (t0 * d.a1 + (now_1 * d.b0 + t1 * d.b1)) : REAL(0);
                    b[L - 1][m] = counts ? now_1 * d.a0 + t1 * d.a1 : REAL(0);
                }
            }
            if (large.first + 4 * at <= j) *large.four(j, 0, at) = make_float4(off_0, on_0, off_1, on_1);
        }
        e = next;
    }
    __syncwarp();
    for (int j = group_of_lane(memory.lane); j <= last; j += GROUPS) {
        Dual e = large.child(f, memory, u, j);
        int2 entry = __ldg(f.children + u.steps_from + j);
        REAL scale = AT(large.scales, j), off_0 = 0, off_1 = 0, on_0 = 0, on_1 = 0;
        const float4 *some = large.fours + fours_before(j) * BLOCK_ROWS;
#pragma unroll 2
        for (int at = 0; at <= j / 4; at++) {
            float4 share = AT(some, at);
            off_0 += share.x;
            on_0 += share.y;
            if (L == 2) off_1 += share.z, on_1 += share.w;
        }
        Dual received = times({off_0, on_0, off_1, on_1}, scale);
        if (L == 1) {
            REAL high = received.a1 * e.a1, marginal = marginal_of(high, received.a0 * e.a0 + high, row);
            give_plain(memory, u.first_message + 2 * j, entry.y, received.a0, received.a1, marginal);
        } else give_dual(memory, entry, received, e, row);
    }
    // The next family uses the same memory.
    __syncwarp();
}

#if MAX_LAYERS > 1
#define LARGE(pass)                                                                   \
    if (u.form == DUAL && u.steps_to - u.steps_from < 4 * GROUPS) pass<4, 2>(f, memory, u, row); \
    else if (u.form == DUAL) pass<8, 2>(f, memory, u, row);                             \
    else if (u.steps_to - u.steps_from < 4 * GROUPS) pass<4, 1>(f, memory, u, row);   \
    else pass<8, 1>(f, memory, u, row);
#else
#define LARGE(pass)                                                                   \
    if (u.steps_to - u.steps_from < 4 * GROUPS) pass<4, 1>(f, memory, u, row);        \
    else pass<8, 1>(f, memory, u, row);
#endif

#endif
