// Loopy belief propagation: nodes of k states, the one-of groups.
//
//   W_s = w_s prod m(s),   m(s) = psi(s, 0) (1 - p) + psi(s, 1) p,   rho = M(1) / M(0),
//   M(x) = sum over listed s of psi(s, x) W_s / m(s) + (sum of W_s that are not listed)
//
// Weights of states are REAL and sums over them double, so that a total minus the listed states keeps what is left. A warp
// computes a sum; its lanes are entries x rows. Cost: O(states + entries).

#define ENTRY_LANES (32 / ROWS)

// A sum over the lanes of one row.
__device__ __forceinline__ double row_sum(double x) {
#pragma unroll
    for (int step = ROWS; step < 32; step *= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

__device__ __forceinline__ double row_most(double x) {
#pragma unroll
    for (int step = ROWS; step < 32; step *= 2) x = fmax(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}

__device__ __forceinline__ REAL &one(Vec *array, int index, int r) { return array[index].v[r]; }

// The messages of the labels of links to the states that they list.
__device__ void hear_links(const Network &n, const Memory &memory) {
    for (int at = threadIdx.x; at < n.entry_count; at += blockDim.x) {
        int2 entry = n.entries[at];
        REAL w0 = n.entry_weights[2 * at], w1 = n.entry_weights[2 * at + 1];
        Vec odds = CAVITY[n.link_port[entry.y]], said;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            REAL off = inverse(1 + odds.v[r]), on = odds.v[r] * off;
            said.v[r] = larger(w0 * off + w1 * on, REAL(FAINT));
        }
        memory.entry[at] = said;
    }
}

// The weight of every state with its own exponent.
__device__ void weigh_states(const Network &n, const Memory &memory, int mask) {
    for (int state = threadIdx.x; state < n.states; state += blockDim.x) {
        Vec own = memory.state_own[state], own_exponent = memory.state_own_exponent[state];
        Vec weight = memory.state_weight[state], exponents = memory.state_exponent[state];
        REAL mantissa[ROWS];
        int exponent[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            mantissa[r] = own.v[r];
            exponent[r] = 0;
        }
        for (int i = n.state_entries_start[state]; i < n.state_entries_start[state + 1]; i++) {
            Vec said = memory.entry[n.state_entries[i]];
#pragma unroll
            for (int r = 0; r < ROWS; r++) mantissa[r] = split(mantissa[r] * said.v[r], exponent[r]);
        }
        for (int i = n.state_parts_start[state]; i < n.state_parts_start[state + 1]; i++) {
            Vec said = memory.part_in[n.state_parts[i]];
#pragma unroll
            for (int r = 0; r < ROWS; r++) mantissa[r] = split(mantissa[r] * said.v[r], exponent[r]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (mask >> r & 1) {
                weight.v[r] = mantissa[r];
                exponents.v[r] = own_exponent.v[r] + REAL(exponent[r]);
            }
        memory.state_weight[state] = weight;
        memory.state_exponent[state] = exponents;
    }
}

// A sum, or the largest number, over the threads of a block that have the same row as this one.
__device__ __forceinline__ double block_row(double x, bool largest, double *room) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    x = largest ? row_most(x) : row_sum(x);
    __syncthreads();
    if (lane < ROWS) room[warp * ROWS + lane] = x;
    __syncthreads();
    double all = room[lane % ROWS];
    for (int w = 1; w < blockDim.x / 32; w++) {
        double other = room[w * ROWS + lane % ROWS];
        all = largest ? fmax(all, other) : all + other;
    }
    return all;
}

// Scales the weights of each group to one exponent, and adds them up. A warp takes a group, or the block if groups are few.
template <bool ALL>
__device__ __forceinline__ void total_groups(const Network &n, const Memory &memory, int mask, Watch *watch, double *room) {
    int lane = ALL ? threadIdx.x : threadIdx.x % 32, lanes = (ALL ? blockDim.x : 32) / ROWS, r = lane % ROWS;
    bool mine = mask >> r & 1;
    for (int group = ALL ? 0 : threadIdx.x / 32; group < n.groups; group += ALL ? 1 : blockDim.x / 32) {
        int from = n.group_start[group], to = n.group_start[group + 1];
        double most = -1e300, total = 0;
        for (int s = from + lane / ROWS; s < to; s += lanes) most = fmax(most, double(one(memory.state_exponent, s, r)));
        most = ALL ? block_row(most, true, room) : row_most(most);
        for (int s = from + lane / ROWS; s < to; s += lanes) {
            double below = double(one(memory.state_exponent, s, r)) - most;
            REAL weight = one(memory.state_weight, s, r);
            weight = below < LOST ? REAL(0) : weight * two_to(int(below), weight);
            if (mine) one(memory.state_weight, s, r) = weight;
            total += double(weight);
        }
        total = ALL ? block_row(total, false, room) : row_sum(total);
        if (mine && lane < ROWS) {
            memory.group_total[group * ROWS + r] = total;
            memory.group_exponent[group * ROWS + r] = most;
        }
        for (int s = from + lane / ROWS; s < to; s += lanes) {
            if (!mine) continue;
            REAL now = REAL(double(one(memory.state_weight, s, r)) / total), before = one(memory.state_belief, s, r);
            if (watch) {
                REAL difference = absolute(now - before);
                REAL proportion = now > REAL(LEAST) ? difference / (now + before) : REAL(0);
                // A thread watches all rows; this one changes only its own.
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    if (i == r) {
                        watch->change[i] = larger(watch->change[i], difference);
                        watch->drift[i] = larger(watch->drift[i], proportion);
                    }
            }
            one(memory.state_belief, s, r) = now;
        }
    }
}

// The weight of the states of a group that are not in an ascending list: the total minus the listed, or the sum itself where
// that would cancel. `state_of(i)` is the i-th listed state.
template <class States>
__device__ double weight_of_rest(const Network &n, const Memory &memory, int group, int r, double listed, int count,
                                 States state_of) {
    int from = n.group_start[group], to = n.group_start[group + 1];
    if (count == to - from) return 0;
    double total = memory.group_total[group * ROWS + r], rest = total - listed;
    if (rest >= 1e-9 * total) return rest;
    double sum = 0;
    int next = from;
    for (int i = 0; i <= count; i++) {
        int end = i < count ? state_of(i) : to;
        for (int s = next; s < end; s++) sum += double(one(memory.state_weight, s, r));
        next = end + 1;
    }
    return sum;
}

struct LinkStates {
    const int2 *entries;
    __device__ int operator()(int i) const { return entries[i].x; }
};

struct PartStates {
    const int *states;
    __device__ int operator()(int i) const { return states[i]; }
};

// M(0) and M(1) of a link for the row of this lane.
__device__ void link_sums(const Network &n, const Memory &memory, int link, int lane, double &off, double &on) {
    int r = lane % ROWS, from = n.link_start[link], to = n.link_start[link + 1];
    double listed = 0;
    off = on = 0;
    for (int at = from + lane / ROWS; at < to; at += ENTRY_LANES) {
        REAL weight = one(memory.state_weight, n.entries[at].x, r);
        double cavity = double(weight) / double(one(memory.entry, at, r));
        off += double(n.entry_weights[2 * at]) * cavity;
        on += double(n.entry_weights[2 * at + 1]) * cavity;
        listed += double(weight);
    }
    off = row_sum(off);
    on = row_sum(on);
    listed = row_sum(listed);
    LinkStates states = {n.entries + from};
    double rest = weight_of_rest(n, memory, n.link_group[link], r, listed, to - from, states);
    off += rest;
    on += rest;
}

// The messages of groups to the labels of their links.
__device__ void tell_links(const Network &n, const Memory &memory, const Course &course) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = lane % ROWS;
    for (int link = warp; link < n.links; link += blockDim.x / 32) {
        double off, on;
        link_sums(n, memory, link, lane, off, on);
        if (lane >= ROWS) continue;
        REAL &said = one(INCOMING, n.link_port[link], r);
        damp(course, double(said), on, off);
        said = wide_odds(on / off);
    }
}

// The weight of the states of a part, and of the others, for the row of this lane.
__device__ void part_weights(const Network &n, const Memory &memory, int part, int lane, double &here, double &rest) {
    int r = lane % ROWS, from = n.part_start[part], to = n.part_start[part + 1];
    here = 0;
    for (int i = from + lane / ROWS; i < to; i += ENTRY_LANES)
        here += double(one(memory.state_weight, n.part_states[i], r));
    here = row_sum(here);
    PartStates states = {n.part_states + from};
    rest = weight_of_rest(n, memory, n.part_group[part], r, here, to - from, states);
}

// The messages of groups to cardinality factors: the odds of their part without the factor's own message.
__device__ void tell_parts(const Network &n, const Memory &memory, int mask) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = lane % ROWS;
    for (int part = warp; part < n.parts; part += blockDim.x / 32) {
        double here, rest;
        part_weights(n, memory, part, lane, here, rest);
        if (lane >= ROWS || !(mask >> r & 1)) continue;
        double odds = here / double(one(memory.part_in, part, r)) / rest;
        one(memory.part_cavity, part, r) = wide_odds(odds);
    }
}

// The weights of all groups from their newest messages.
__device__ void weigh_groups(const Network &n, const Memory &memory, int mask, Watch *watch, double *room) {
    hear_links(n, memory);
    __syncthreads();
    weigh_states(n, memory, mask);
    __syncthreads();
    if (n.groups * 64 <= blockDim.x) total_groups<true>(n, memory, mask, watch, room);
    else total_groups<false>(n, memory, mask, watch, room);
    __syncthreads();
}
