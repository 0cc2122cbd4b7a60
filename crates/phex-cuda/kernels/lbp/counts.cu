// Loopy belief propagation: cardinality factors, which are exclusion groups of k members with cost w per pair.
//
//   rho_i = sum_m e_m q^C(m+1,2) / sum_m e_m q^C(m,2)        e_m the m-th symmetric polynomial of the others' odds
//
// The sums go through the distribution D of the count of independent members whose odds are tilted by tau = e^-lambda,
// lambda = w (c - 1/2), around a count c, with g(m) = exp(-w (m - c)^2 / 2). D without a member comes by division, small
// counts from below and large ones from above. In doubles; lanes are counts, then members. Factors of up to 31 members that
// are not so strong that they need a tilt have 8, 16 or 32 lanes per row, which exchange numbers in registers; the others
// have a warp and its room in global memory. Cost: O(k^2) per factor and row, in O(k) steps.

// Below this total cost of all pairs nothing underflows without a tilt.
#define SAFE_COST 600.0
// Probabilities below this may have lost digits, and no weight makes up for that.
#define LOST_DIGITS 1e-280

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

__device__ __forceinline__ double member_odds(const Network &n, const Memory &memory, int factor, int i, int r) {
    int member = n.members[n.factor_start[factor] + i];
    return member >= 0 ? double(one(CAVITY, member, r)) : double(one(memory.part_cavity, -1 - member, r));
}

// ln(1 + C) - ln(1 + B) of a port.
__device__ double port_term(const Network &n, const Memory &memory, int port, int r) {
    double cavity = one(CAVITY, port, r), belief = cavity * double(one(INCOMING, port, r));
    return log1p(cavity) - log1p(belief);
}

// A warp's room: odds, tilted probability on, distribution, weight; k + 1 numbers each.
struct Count {
    double *odds, *on, *distribution, *weight;
    double tilt, centre;
    int k;
};

__device__ double likely_count(const Count &c, double cost, int lane) {
    double low = 0, high = c.k + 1;
    for (int step = 32 - __clz(c.k); step >= 0; step--) {
        double middle = floor((low + high) / 2), tilt = exp(-cost * middle), expected = 0;
        for (int i = lane; i < c.k; i += 32) expected += c.odds[i] * tilt / (1 + c.odds[i] * tilt);
        if (warp_sum(expected) >= middle) low = middle;
        else high = middle;
    }
    return fmax(low, 0.5);
}

__device__ Count count_members(const Network &n, const Memory &memory, int factor, int r, int lane) {
    Count c;
    double cost = n.factor_cost[factor];
    c.k = n.factor_start[factor + 1] - n.factor_start[factor];
    c.odds = memory.counts + u64(threadIdx.x / 32) * 4 * (n.largest + 1);
    c.on = c.odds + n.largest + 1;
    c.distribution = c.on + n.largest + 1;
    c.weight = c.distribution + n.largest + 1;
    c.tilt = 1;
    c.centre = 0.5;
    for (int i = lane; i < c.k; i += 32) c.odds[i] = member_odds(n, memory, factor, i, r);
    __syncwarp();
    if (isinf(cost)) return c;
    if (cost * c.k * c.k / 2 >= SAFE_COST) c.centre = likely_count(c, cost, lane);
    c.tilt = exp(-cost * (c.centre - 0.5));
    for (int i = lane; i < c.k; i += 32) {
        double tilted = c.odds[i] * c.tilt;
        c.on[i] = tilted / (1 + tilted);
    }
    for (int m = lane; m <= c.k; m += 32) {
        double away = m - c.centre;
        c.weight[m] = exp(-cost * away * away / 2);
        c.distribution[m] = m == 0 ? 1 : 0;
    }
    __syncwarp();
    for (int i = 0; i < c.k; i++) {
        double on = c.on[i], off = 1 / (1 + c.odds[i] * c.tilt);
        // From above, so that the entry below is still the old one.
        for (int high = (i + 1) / 32 * 32; high >= 0; high -= 32) {
            int m = high + lane;
            double value = 0;
            if (m <= i + 1) value = c.distribution[m] * off + (m > 0 ? c.distribution[m - 1] * on : 0);
            __syncwarp();
            if (m <= i + 1) c.distribution[m] = value;
            __syncwarp();
        }
    }
    return c;
}

// Whether the distribution without a member is still computed from below at a count, where `below` comes from the count below.
// From the first count where it is not, it is computed from above. See counts.rs of the CPU engine.
__device__ __forceinline__ bool rises(double here, double below, int count, double off) {
    if (count == 0) return here >= LOST_DIGITS || off > 1e-8;
    return here < LOST_DIGITS || here >= 2 * below;
}

// The message to a member, above / below; each lane asks for its own member.
__device__ void count_message(const Count &c, double cost, int member, double &above, double &below) {
    above = below = 0;
    if (isinf(cost)) {
        above = below = 1;
        for (int i = 0; i < c.k; i++) below += i == member ? 0 : c.odds[i];
        return;
    }
    double on = c.on[member], off = 1 / (1 + c.odds[member] * c.tilt), least = 1 / off, most = 1 / on, left = 0;
    int turn = 0;
    for (; turn < c.k && rises(c.distribution[turn], on * left, turn, off); turn++) {
        left = c.distribution[turn] < LOST_DIGITS ? 0.0 : (c.distribution[turn] - on * left) * least;
        above += left * c.weight[turn + 1];
        below += left * c.weight[turn];
    }
    left = 0;
    for (int m = c.k - 1; m >= turn; m--) {
        left = fmax((c.distribution[m + 1] - off * left) * most, 0.0);
        above += left * c.weight[m + 1];
        below += left * c.weight[m];
    }
    above *= c.tilt;
}

// Writes the message to a member of a factor.
__device__ __forceinline__ void tell_member(const Memory &memory, const Network &n, const Course &course, int member, int r,
                                            double above, double below) {
    REAL &said = member >= 0 ? one(INCOMING, member, r) : one(memory.part_in, -1 - member, r);
    damp(course, double(said), above, below);
    said = wide_odds(above / below);
}

// A lane's share of a small factor: the odds of a member, the probability of a count, and its weight.
struct Few {
    double odds, off, on, counts, weight;
    int factor, row, start, k, most;
    bool hard, there;
};

// Small factors, WIDTH lanes for each factor and row, which is more than it has members; from task `first` on.
template <int WIDTH>
__device__ __forceinline__ Few count_few(const Network &n, const Memory &memory, int from, int tasks, int first) {
    int lane = threadIdx.x % 32, at = lane % WIDTH, task = min(first + lane / WIDTH, tasks - 1);
    Few f;
    f.there = first + lane / WIDTH < tasks;
    f.factor = from + task / ROWS;
    f.row = task % ROWS;
    f.start = n.factor_start[f.factor];
    f.k = n.factor_start[f.factor + 1] - f.start;
    // Factors come in order of size: the last one of the warp has the most members.
    int last = from + (min(first + 32 / WIDTH, tasks) - 1) / ROWS;
    f.most = n.factor_start[last + 1] - n.factor_start[last];
    f.hard = isinf(n.factor_cost[f.factor]);
    f.odds = at < f.k ? member_odds(n, memory, f.factor, at, f.row) : 0.0;
    f.weight = at <= f.k ? n.factor_weight[f.start + f.factor + at] : 0.0;
    f.off = 1 / (1 + f.odds);
    f.on = f.odds * f.off;
    f.counts = at == 0 ? 1 : 0;
    for (int i = 0; i < f.most; i++) {
        double on = __shfl_sync(ALL_LANES, f.on, i, WIDTH), off = __shfl_sync(ALL_LANES, f.off, i, WIDTH);
        double fewer = __shfl_up_sync(ALL_LANES, f.counts, 1, WIDTH);
        if (i < f.k) f.counts = f.counts * off + (at > 0 ? fewer * on : 0.0);
    }
    return f;
}

// Messages of all factors of one size class.
template <int WIDTH>
__device__ __forceinline__ void visit_few(const Network &n, const Memory &memory, const Course &course, int from, int to) {
    int at = threadIdx.x % WIDTH, tasks = (to - from) * ROWS;
    for (int first = threadIdx.x / 32 * (32 / WIDTH); first < tasks; first += blockDim.x / WIDTH) {
        Few f = count_few<WIDTH>(n, memory, from, tasks, first);
        double above = 0, below = 0, left = 0, least = 1 / f.off, most = 1 / f.on;
        double near = __shfl_sync(ALL_LANES, f.weight, 0, WIDTH), top = __shfl_sync(ALL_LANES, f.weight, f.k, WIDTH);
        // Counts without the member: from 0 up to the turn, then from k - 1 down to it.
        bool up = true;
        int down = f.k - 1;
        for (int step = 0; step < f.most; step++) {
            double here = __shfl_sync(ALL_LANES, f.counts, step, WIDTH), other = __shfl_sync(ALL_LANES, f.odds, step, WIDTH);
            if (up && !rises(here, f.on * left, step, f.off)) {
                up = false;
                left = 0;
                near = top;
            }
            double above_it = __shfl_sync(ALL_LANES, f.counts, down + 1, WIDTH);
            double far = __shfl_sync(ALL_LANES, f.weight, up ? step + 1 : down, WIDTH);
            if (f.hard) {
                // 1 / (1 + the odds of the others)
                below += step == at ? 0.0 : other;
            } else if (step < f.k) {
                left = fmax(up ? (here - f.on * left) * least : (above_it - f.off * left) * most, 0.0);
                if (up && here < LOST_DIGITS) left = 0;
                above += left * (up ? far : near);
                below += left * (up ? near : far);
            }
            near = far;
            down -= !up;
        }
        if (f.hard) above = 1, below += 1;
        if (at < f.k && f.there) tell_member(memory, n, course, n.members[f.start + at], f.row, above, below);
    }
}

// The terms of log Z of all factors of one size class, each lane its own: ln Z_f - sum of ln(1 + a), and those of members.
template <int WIDTH>
__device__ __forceinline__ void add_few(const Network &n, const Memory &memory, int from, int to, Sums &out) {
    int at = threadIdx.x % WIDTH, tasks = (to - from) * ROWS;
    for (int first = threadIdx.x / 32 * (32 / WIDTH); first < tasks; first += blockDim.x / WIDTH) {
        Few f = count_few<WIDTH>(n, memory, from, tasks, first);
        double total = f.hard ? f.odds + (at == 0 ? 1 : 0) : f.counts * f.weight, mine = 0;
#pragma unroll
        for (int step = 1; step < WIDTH; step *= 2) total += __shfl_xor_sync(ALL_LANES, total, step);
        if (f.hard) mine -= log1p(f.odds);
        if (at == 0) mine += log(total) + (f.hard ? 0.0 : n.factor_cost[f.factor] / 8);
        int member = at < f.k ? n.members[f.start + at] : -1;
        if (member >= 0) mine += port_term(n, memory, member, f.row);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r == f.row && f.there) out.v[r] += mine;
    }
}

// All messages of all factors.
__device__ void visit_counts(const Network &n, const Memory &memory, const Course &course) {
    visit_few<8>(n, memory, course, 0, n.small_factors[0]);
    visit_few<16>(n, memory, course, n.small_factors[0], n.small_factors[1]);
    visit_few<32>(n, memory, course, n.small_factors[1], n.small_factors[2]);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int task = n.small_factors[2] * ROWS + warp; task < n.factors * ROWS; task += blockDim.x / 32) {
        int factor = task / ROWS, r = task % ROWS;
        Count c = count_members(n, memory, factor, r, lane);
        for (int i = lane; i < c.k; i += 32) {
            double above, below;
            count_message(c, n.factor_cost[factor], i, above, below);
            tell_member(memory, n, course, n.members[n.factor_start[factor] + i], r, above, below);
        }
        __syncwarp();
    }
}

// ln Z_f - sum of ln(1 + a), by a whole warp.
__device__ double count_energy(const Network &n, const Count &c, int factor, int lane) {
    double cost = n.factor_cost[factor], total = 0, moved = 0;
    if (isinf(cost)) {
        for (int i = lane; i < c.k; i += 32) {
            total += c.odds[i];
            moved -= log1p(c.odds[i]);
        }
        return log1p(warp_sum(total)) + warp_sum(moved);
    }
    for (int m = lane; m <= c.k; m += 32) total += c.distribution[m] * c.weight[m];
    for (int i = lane; i < c.k; i += 32) moved += log1p(c.odds[i] * c.tilt) - log1p(c.odds[i]);
    return log(warp_sum(total)) + cost * c.centre * c.centre / 2 + warp_sum(moved);
}

// The terms of log Z of all factors, and those of their members.
__device__ void add_counts(const Network &n, const Memory &memory, Sums &out) {
    add_few<8>(n, memory, 0, n.small_factors[0], out);
    add_few<16>(n, memory, n.small_factors[0], n.small_factors[1], out);
    add_few<32>(n, memory, n.small_factors[1], n.small_factors[2], out);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int task = n.small_factors[2] * ROWS + warp; task < n.factors * ROWS; task += blockDim.x / 32) {
        int factor = task / ROWS, row = task % ROWS;
        Count c = count_members(n, memory, factor, row, lane);
        double energy = count_energy(n, c, factor, lane), mine = lane == 0 ? energy : 0;
        for (int i = lane; i < c.k; i += 32) {
            int member = n.members[n.factor_start[factor] + i];
            if (member >= 0) mine += port_term(n, memory, member, row);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r == row) out.v[r] += mine;
        __syncwarp();
    }
}
