// forest-bp: messages on the pairs of labels that a forest leaves out, between passes of `family` over the forest.
//
//   theta' = theta + sum of ln m,   b = marginals of the forest under theta'
//   m_{j->i} = (psi10 + psi11 C) / (psi00 + psi01 C),   C = odds(b_j) / m_{i->j}
//
// One row per CUDA block. Its threads share the pairs; then they share the labels, each of which adds up its own messages in
// a fixed order. A row whose beliefs no longer change is not listed for the next pass. All in doubles. Cost of an
// iteration: one pass of `family`, and O(pairs + labels) per row.

// Odds are kept within this and its inverse.
#define CERTAIN 1e250

struct Pairs {
    // The labels of each pair; exp(-cost) and the costs of (0, 0), (0, 1), (1, 0), (1, 1).
    const int2 *ends;
    const double *weights, *costs;
    // The messages of each label: 2 * pair + side.
    const int *label_start, *label_messages;
    int pairs, labels, iterations;
    double tolerance, damping;
};

// For all rows: scores with messages added, beliefs now and before, messages, log Z and status of the forest.
struct Beliefs {
    double *adjusted, *fresh, *old, *messages, *forest;
    int *status;
    double *residual;
    int *iterations, *converged;
};

__device__ __forceinline__ double within(double odds) {
    // NaN comes from 0/0: the pair forbids what the forest is sure of.
    return isnan(odds) ? 1.0 : fmin(fmax(odds, 1 / CERTAIN), CERTAIN);
}

__device__ __forceinline__ double odds_of(double p) { return within(p / (1 - p)); }

extern "C" __global__ void __launch_bounds__(THREADS) forest_bp_start(Pairs p, Rows rows, Beliefs b) {
    for (int row = blockIdx.x; row < rows.rows; row += gridDim.x) {
        const SCORE *scores = scores_of(rows, row, p.labels);
        for (int i = threadIdx.x; i < p.labels; i += blockDim.x) {
            b.adjusted[u64(row) * p.labels + i] = double(scores[i]);
            b.old[u64(row) * p.labels + i] = 0;
        }
        for (int i = threadIdx.x; i < 2 * p.pairs; i += blockDim.x) b.messages[u64(row) * 2 * p.pairs + i] = 1;
    }
}

// The new message above / below, mixed with the old one as probabilities.
__device__ __forceinline__ double mixed(double keep, double above, double below, double before) {
    double fresh = (1 - keep) * (1 + before), kept = keep * (above + below);
    return within((fresh * above + kept * before) / (fresh * below + kept));
}

__device__ __forceinline__ void send(const Pairs &p, const double *beliefs, double *messages, int pair, double keep) {
    int2 ends = p.ends[pair];
    const double *w = p.weights + 4 * pair;
    double to_a = messages[2 * pair], to_b = messages[2 * pair + 1];
    double a = within(odds_of(beliefs[ends.x]) / to_a), b = within(odds_of(beliefs[ends.y]) / to_b);
    // Scaled so that nothing overflows: only the proportion of off and on matters.
    double off_a = 1 / (1 + a), off_b = 1 / (1 + b), on_a = a * off_a, on_b = b * off_b;
    messages[2 * pair] = mixed(keep, w[2] * off_b + w[3] * on_b, w[0] * off_b + w[1] * on_b, to_a);
    messages[2 * pair + 1] = mixed(keep, w[1] * off_a + w[3] * on_a, w[0] * off_a + w[2] * on_a, to_b);
}

// After pass `iteration` of the forest over the listed rows: lists those that go on in `next`, and updates their messages and
// scores.
extern "C" __global__ void __launch_bounds__(THREADS)
    forest_bp_iterate(Pairs p, Rows rows, Beliefs b, int *next, int iteration) {
    __shared__ double room[THREADS / 32];
    int to_do = rows_to_do(rows);
    for (int at = blockIdx.x; at < to_do; at += gridDim.x) {
        int row = row_at(rows, at);
        u64 first = u64(row) * p.labels;
        double change = 0;
        for (int i = threadIdx.x; i < p.labels; i += blockDim.x) {
            double fresh = b.fresh[first + i];
            change = fmax(change, fabs(fresh - b.old[first + i]));
            b.old[first + i] = fresh;
        }
        change = p.pairs ? over_block(change, room, true) : 0;
        bool enough = p.tolerance > 0 && change <= p.tolerance;
        bool goes_on = !enough && b.status[row] == ANSWERED && p.pairs > 0 && iteration + 1 < p.iterations;
        if (threadIdx.x == 0) {
            b.residual[row] = change;
            b.iterations[row] = iteration + 1;
            if (goes_on) next[1 + atomicAdd(next, 1)] = row;
        }
        // A row that stops keeps the messages that led to its last beliefs.
        if (!goes_on) continue;
        // The first messages are not damped: there are no old ones.
        double keep = iteration == 0 ? 0 : p.damping, *messages = b.messages + u64(row) * 2 * p.pairs;
        for (int pair = threadIdx.x; pair < p.pairs; pair += blockDim.x) send(p, b.old + first, messages, pair, keep);
        __syncthreads();
        const SCORE *scores = scores_of(rows, row, p.labels);
        for (int i = threadIdx.x; i < p.labels; i += blockDim.x) {
            double score = double(scores[i]);
            for (int m = p.label_start[i]; m < p.label_start[i + 1]; m++) score += log(messages[p.label_messages[m]]);
            b.adjusted[first + i] = score;
        }
        __syncthreads();
    }
}

__device__ __forceinline__ double softplus(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }

// A pair's term of the Bethe log Z.
__device__ __forceinline__ double pair_term(const Pairs &p, const double *beliefs, const double *messages, int pair) {
    int2 ends = p.ends[pair];
    const double *cost = p.costs + 4 * pair;
    double odds_a = log(odds_of(beliefs[ends.x])), odds_b = log(odds_of(beliefs[ends.y]));
    double a = odds_a - log(messages[2 * pair]), c = odds_b - log(messages[2 * pair + 1]);
    double all[4] = {-cost[0], c - cost[1], a - cost[2], a + c - cost[3]}, sum = 0;
    double most = fmax(fmax(all[0], all[1]), fmax(all[2], all[3]));
    if (most == MINUS_INFINITY) return most;
#pragma unroll
    for (int i = 0; i < 4; i++) sum += exp(all[i] - most);
    return most + log(sum) - softplus(odds_a) - softplus(odds_b);
}

extern "C" __global__ void __launch_bounds__(THREADS) forest_bp_finish(Pairs p, Rows rows, Beliefs b) {
    __shared__ double room[THREADS / 32];
    for (int row = blockIdx.x; row < rows.rows; row += gridDim.x) {
        u64 first = u64(row) * p.labels;
        int status = b.status[row];
        const double *messages = b.messages + u64(row) * 2 * p.pairs;
        double sum = 0;
        for (int pair = threadIdx.x; pair < p.pairs && status == ANSWERED; pair += blockDim.x)
            sum += pair_term(p, b.old + first, messages, pair);
        double value = b.forest[row] + over_block(sum, room, false);
        if (status == ANSWERED && value == MINUS_INFINITY) status = IMPOSSIBLE;
        for (int i = threadIdx.x; i < p.labels; i += blockDim.x)
            rows.marginals[first + i] = status ? SCORE(QUIET_NAN) : SCORE(b.old[first + i]);
        if (threadIdx.x == 0) {
            rows.log_partition[row] = value;
            rows.status[row] = status;
            b.converged[row] = b.residual[row] <= fmax(p.tolerance, 1e-6);
        }
    }
}
