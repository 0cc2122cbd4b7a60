// Loopy belief propagation: cardinality factors, exclusion groups of k members at cost w a pair.
//
//   rho_i = sum_m e_m q^C(m+1,2) / sum_m e_m q^C(m,2)        e_m the m-th symmetric polynomial of the others' odds
//
// Through the distribution D of a count of independent members with odds tilted by tau = e^-lambda, lambda = w (c - 1/2),
// about a count c, and g(m) = exp(-w (m - c)^2 / 2); D without a member by division from below or from above, whichever
// damps rounding. Doubles, a warp for a factor and row: lanes are counts, then members. Cost: O(k^2) a factor and row.

// Below this total cost of all pairs nothing underflows without a tilt.
#define SAFE_COST 600.0

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) x += __shfl_xor_sync(FULL, x, step);
    return x;
}

__device__ __forceinline__ double member_odds(const Network &n, const Memory &memory, int factor, int i, int r) {
    int member = n.members[n.factor_start[factor] + i];
    return member >= 0 ? double(one(memory.cavity, member, r)) : double(one(memory.part_cavity, -1 - member, r));
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
        // From above, so that what is below is still the old one.
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

// The odds that a member hears, above and below the line; each lane asks for its own member.
__device__ void count_message(const Count &c, double cost, int member, double &above, double &below) {
    above = below = 0;
    if (isinf(cost)) {
        above = below = 1;
        for (int i = 0; i < c.k; i++) below += i == member ? 0 : c.odds[i];
        return;
    }
    double on = c.on[member], off = 1 / (1 + c.odds[member] * c.tilt), left = 0;
    if (on <= 0.5) {
        double least = 1 / off;
        for (int m = 0; m < c.k; m++) {
            left = fmax((c.distribution[m] - on * left) * least, 0.0);
            above += left * c.weight[m + 1];
            below += left * c.weight[m];
        }
    } else {
        double most = 1 / on;
        for (int m = c.k - 1; m >= 0; m--) {
            left = fmax((c.distribution[m + 1] - off * left) * most, 0.0);
            above += left * c.weight[m + 1];
            below += left * c.weight[m];
        }
    }
    above *= c.tilt;
}

// All messages of all factors.
__device__ void visit_counts(const Network &n, const Memory &memory, const Course &course) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int task = warp; task < n.factors * ROWS; task += blockDim.x / 32) {
        int factor = task / ROWS, r = task % ROWS;
        Count c = count_members(n, memory, factor, r, lane);
        for (int i = lane; i < c.k; i += 32) {
            double above, below;
            count_message(c, n.factor_cost[factor], i, above, below);
            int member = n.members[n.factor_start[factor] + i];
            REAL &said = member >= 0 ? one(memory.incoming, member, r) : one(memory.part_in, -1 - member, r);
#ifdef DAMPED
            double before = said, fresh = course.new_part * (1 + before), kept = course.old_part * (above + below);
            above = fresh * above + kept * before;
            below = fresh * below + kept;
#endif
            said = REAL(fmin(fmax(above / below, 1.0 / double(WIDE)), double(WIDE)));
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
