// A label with children in general: its counted sets one after another, then its own weights.

// A counted set on the way up or down.
template <bool UP> struct UnitPass {
    const Forest &f;
    const Unit &u;
    Row &row;
    template <int STRIDE> __device__ __forceinline__ void at(const Memory &own, REAL *cells) const {
        if (UP) inside_unit<STRIDE>(f, own, u, cells, row);
        else outside_unit<STRIDE>(f, own, u, cells, row);
    }
};

// One label on the way up. A family alone in its round has all lanes of the warp; the lanes of the first group do what is not
// spread over counts.
__device__ __forceinline__ void inside_parent(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    bool leads = !memory.alone || group_of_lane(memory.lane) == 0;
    for (int index = p.units_from; index < p.units_to; index++) {
        const Unit u = fetch(f.units, index);
#if GROUPS > 1
        if (is_large(memory, u)) { LARGE(inside_large) }
        else
#endif
        if (leads)
            with_cells(memory, u, UnitPass<true>{f, u, row});
        if (leads && index > p.units_from) multiply(f, memory, index, row);
    }
    if (!leads) return;
    const Unit last = fetch(f.units, p.units_to - 1);
    REAL off = p.label < 0 ? REAL(0) : AT(memory.numbers, p.weight);
    REAL on = p.label < 0 ? REAL(1) : AT(memory.numbers, p.weight + 1);
    REAL message[2 * MAX_LAYERS];
    REAL most = 0;
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++) message[i] = 0;
    if (p.same_layers) {
#pragma unroll
        for (int i = 0; i < 2 * MAX_LAYERS; i++)
            if (i < 2 * p.layers) message[i] = AT(memory.totals, last.product + i) * (i < p.layers ? off : on);
    } else {
        for (int at = p.own_from; at < p.own_to; at++) {
            uchar4 move = __ldg(f.moves + at);
            REAL below = AT(memory.totals, last.product + move.y * last.product_layers + move.x);
            int to = move.y * p.layers + move.z;
#pragma unroll
            for (int i = 0; i < 2 * MAX_LAYERS; i++)
                if (i == to) message[i] += below * (move.y ? on : off);
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++) most = larger(most, message[i]);
    // The root has no weights, which would carry the scale to the way down.
    REAL scale = p.label < 0 ? REAL(1) : power_of_two(most, row.exponents);
#pragma unroll
    for (int i = 0; i < 2 * MAX_LAYERS; i++)
        if (i < 2 * p.layers) AT(memory.numbers, p.message + i) = message[i] * scale;
    if (p.label < 0) return;
    // The way down needs the scaled weights.
    AT(memory.numbers, p.weight) = off * scale;
    AT(memory.numbers, p.weight + 1) = on * scale;
}

__device__ __forceinline__ void outside_parent(const Forest &f, const Memory &memory, const Parent &p, Row &row) {
    const Unit last = fetch(f.units, p.units_to - 1);
    bool leads = !memory.alone || group_of_lane(memory.lane) == 0;
    // The message from above, with the label's own weights. Above the root it is the inverse of the root's value, which stays.
    auto above = [&](int i) {
        if (p.label >= 0) return AT(memory.numbers, p.message + i);
        return i == 1 ? 1 / AT(memory.numbers, f.root + 1) : REAL(0);
    };
    if (!leads) {
    } else if (p.same_layers) {
        for (int i = 0; i < 2 * p.layers; i++) AT(memory.shares, last.product + i) = above(i);
    } else {
        for (int i = 0; i < 2 * last.product_layers; i++) AT(memory.shares, last.product + i) = 0;
        for (int at = p.own_from; at < p.own_to; at++) {
            uchar4 move = __ldg(f.moves + at);
            AT(memory.shares, last.product + move.y * last.product_layers + move.x) += above(move.y * p.layers + move.z);
        }
    }
    for (int index = p.units_to - 1; index >= p.units_from; index--) {
        if (leads && index > p.units_from) divide(f, memory, index);
        const Unit u = fetch(f.units, index);
#if GROUPS > 1
        if (is_large(memory, u)) {
            // The other groups read what the first has written.
            __syncwarp();
            LARGE(outside_large)
        } else
#endif
        if (leads)
            with_cells(memory, u, UnitPass<false>{f, u, row});
    }
}
