// From answers to losses and gradients, on the device.
//
//   joint:     loss = log Z - log Z(observed),  d loss / d l = w (E[x] - E[x | observed])
//   marginals: d L / d l = Cov(x) g = (P(l + e g) - P(l - e g)) / 2e,  e max|g| = STEP, in doubles
//
// Each is one pass over rows × labels: bound by memory.

// The largest change of a score in differences: their truncation and their rounding are then both near 1e-9.
#define STEP 1e-4

// The first `rows` of the answers are free, the next clamped. Rows without an answer have a gradient of 0.
extern "C" __global__ void joint(const SCORE *marginals, const double *log_partition, const int *status,
                                 const SCORE *weights, SCORE *losses, SCORE *gradient, int *out_status, int rows,
                                 int labels) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        int what = max(status[row], status[row + rows]);
        SCORE weight = weights ? weights[row] : SCORE(1);
        const SCORE *free = marginals + u64(row) * labels, *clamped = free + u64(rows) * labels;
        for (int i = threadIdx.x; i < labels; i += blockDim.x)
            gradient[u64(row) * labels + i] = what || weight == 0 ? SCORE(0) : weight * (free[i] - clamped[i]);
        if (threadIdx.x == 0) {
            double loss = log_partition[row] - log_partition[row + rows];
            if (what == IMPOSSIBLE) loss = -MINUS_INFINITY;
            if (what == BAD_SCORE || what == OUT_OF_RANGE) loss = QUIET_NAN;
            losses[row] = weight == 0 ? SCORE(0) : SCORE(double(weight) * loss);
            out_status[row] = what;
        }
    }
}

// The paper's loss, minus the sum of the log-probabilities of observed labels, and its slope by each marginal.
extern "C" __global__ void marginal_loss(const SCORE *marginals, const i8 *evidence, const int *status,
                                         const SCORE *weights, SCORE *losses, double *slopes, int rows, int labels) {
    __shared__ double room[THREADS / 32];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        double loss = 0, weight = weights ? double(weights[row]) : 1.0;
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            u64 at = u64(row) * labels + i;
            double p = marginals[at], slope = 0;
            int known = read_known(evidence[at]);
            if (known > 1) loss = QUIET_NAN;
            else if (known && !status[row] && weight != 0) {
                p = fmax(known > 0 ? p : 1 - p, 1e-37);
                loss -= log(p);
                slope = -weight * known / p;
            }
            slopes[at] = slope;
        }
        loss = over_block(loss, room, false);
        if (threadIdx.x == 0) losses[row] = status[row] && weight != 0 ? SCORE(QUIET_NAN) : SCORE(weight * loss);
    }
}

// Scores moved along the slopes, up in the first half of `moved` and down in the second; and 1 / 2e of each row.
template <class Slope>
__device__ void move_rows(const SCORE *scores, const Slope *slopes, double *moved, double *factors, int rows, int labels,
                          double *room) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        double most = 0;
        for (int i = threadIdx.x; i < labels; i += blockDim.x)
            most = fmax(most, fabs(double(slopes[u64(row) * labels + i])));
        most = over_block(most, room, true);
        double step = most > 0 ? STEP / most : 0;
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            u64 at = u64(row) * labels + i;
            double score = scores[at], by = step * double(slopes[at]);
            moved[at] = score + by;
            moved[u64(rows) * labels + at] = score - by;
        }
        if (threadIdx.x == 0) factors[row] = most / (2 * STEP);
    }
}

extern "C" __global__ void move_by_loss(const SCORE *scores, const double *slopes, double *moved, double *factors,
                                        int rows, int labels) {
    __shared__ double room[THREADS / 32];
    move_rows(scores, slopes, moved, factors, rows, labels, room);
}

extern "C" __global__ void move_by_slope(const SCORE *scores, const SCORE *slopes, double *moved, double *factors,
                                         int rows, int labels) {
    __shared__ double room[THREADS / 32];
    move_rows(scores, slopes, moved, factors, rows, labels, room);
}

// The covariance product from the answers to both halves.
extern "C" __global__ void difference(const double *moved, const double *factors, const int *status, SCORE *gradient,
                                      int *out_status, int rows, int labels) {
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        int what = max(status[row], status[row + rows]);
        double factor = factors[row];
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            u64 at = u64(row) * labels + i;
            double slope = factor * (moved[at] - moved[u64(rows) * labels + at]);
            gradient[at] = what || factor == 0 ? SCORE(0) : SCORE(slope);
        }
        if (threadIdx.x == 0) out_status[row] = what;
    }
}
