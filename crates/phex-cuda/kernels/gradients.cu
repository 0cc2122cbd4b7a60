// Losses and their gradients, from the answers of an engine.
//
//   joint:      L = log Z - log Z(e),              dL/dl = E[x] - E[x | e]
//   marginal:   L = -sum_t log p(x_t = e_t),       dL/dl = sum_t (E[x] - E[x | x_t = e_t])
//   covariance: dL/dl = Cov(x) g = (P(l + s) - P(l - s)) max|g| / (2 STEP),   s = STEP g / max|g|,   in doubles
//
// The marginal loss follows `phex::learn`, whose constants the host defines here. A label whose evidence is less probable than
// IMPROBABLE is clamped alone, in a pass of its own: then neither its log-probability nor its gradient cancels. The other
// labels of a row go together: their gradient is a covariance product, with g = 1 / p for a label that is on and
// -1 / (1 - p) for one that is off. Where these are no more than FEW_LABELS, they are clamped alone as well, which costs less.
//
// Only the device knows which labels those are, and the host does not wait to learn it. So the passes go over lists in
// device memory. Each kernel here is one sweep over rows x labels, bound by memory; one row per block.

// In the status of a label: it is not clamped alone.
#define TOGETHER -1

struct Batch {
    const SCORE *scores;
    const i8 *evidence;
    // One weight per row, or null.
    const SCORE *weights;
    SCORE *losses, *gradient;
    int *status;
    int rows, labels;
};

// The answers of a pass of the engine.
struct PassAnswers {
    const SCORE *marginals;
    const double *log_partition;
    const int *status;
};

// Rows whose scores have moved: up in the first half, down in the second, and their answers. In a difference of answers
// `factors` multiplies a row.
struct MovedRows {
    double *scores, *factors;
    const double *marginals;
    const int *status;
};

// The terms of the marginal loss. Labels are numbered row * labels + label.
struct MarginalTerms {
    // Labels that are clamped alone, and places in MovedRows of rows whose labels go together: their number, then the list.
    int *alone, *together;
    // The answers to the labels that are clamped alone: sums of marginals by row, log Z and status by label.
    u64 *sums;
    const double *log_partition;
    int *status;
};

__device__ __forceinline__ double weight_of(const Batch &batch, int row) {
    return batch.weights ? double(batch.weights[row]) : 1.0;
}

// The loss of a row that has no answer.
__device__ __forceinline__ double loss_without(int status) { return status == IMPOSSIBLE ? -MINUS_INFINITY : QUIET_NAN; }

// The first half of the answers is free, the second clamped.
extern "C" __global__ void joint_loss(Batch batch, PassAnswers answers) {
    int rows = batch.rows, labels = batch.labels;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        int status = max(answers.status[row], answers.status[row + rows]);
        SCORE weight = SCORE(weight_of(batch, row));
        const SCORE *free = answers.marginals + u64(row) * labels, *clamped = free + u64(rows) * labels;
        for (int i = threadIdx.x; i < labels; i += blockDim.x)
            batch.gradient[u64(row) * labels + i] = status || weight == 0 ? SCORE(0) : weight * (free[i] - clamped[i]);
        if (threadIdx.x == 0) {
            double loss = status ? loss_without(status) : answers.log_partition[row] - answers.log_partition[row + rows];
            batch.losses[row] = weight == 0 ? SCORE(0) : SCORE(double(weight) * loss);
            batch.status[row] = status;
        }
    }
}

// The gradient by the marginals that a caller gives.
struct GivenSlopes {
    const SCORE *slopes;
    __device__ __forceinline__ double operator()(int label) const { return slopes[label]; }
};

// The gradient of the log-probability of a row's labels by the marginals, for those that are not improbable.
struct LikelySlopes {
    const SCORE *marginals;
    const i8 *evidence;
    // The probability of the evidence of a label, or -1 without evidence.
    __device__ __forceinline__ double probability(int label) const {
        if (is_unknown(evidence[label])) return -1;
        return is_on(evidence[label]) ? double(marginals[label]) : 1 - double(marginals[label]);
    }
    __device__ __forceinline__ double operator()(int label) const {
        double p = probability(label);
        return p < IMPROBABLE ? 0.0 : is_on(evidence[label]) ? 1 / p : -1 / p;
    }
};

// Moves the scores of a row along its slopes.
template <class Slopes>
__device__ __forceinline__ void move_row(const Batch &batch, int row, const Slopes &slopes, const MovedRows &moved, double *room) {
    double most = 0;
    for (int i = threadIdx.x; i < batch.labels; i += blockDim.x) most = fmax(most, fabs(slopes(i)));
    most = over_block(most, room, true);
    for (int i = threadIdx.x; i < batch.labels; i += blockDim.x) {
        u64 at = u64(row) * batch.labels + i;
        // The slope is divided first: a tiny step times a huge slope would lose digits.
        double score = batch.scores[at], by = most > 0 ? STEP * (slopes(i) / most) : 0;
        moved.scores[at] = score + by;
        moved.scores[u64(batch.rows) * batch.labels + at] = score - by;
    }
    if (threadIdx.x == 0) moved.factors[row] = 0.5 * most / STEP;
}

extern "C" __global__ void covariance_move(Batch batch, const SCORE *slopes, MovedRows moved) {
    __shared__ double room[THREADS / 32];
    for (int row = blockIdx.x; row < batch.rows; row += gridDim.x)
        move_row(batch, row, GivenSlopes{slopes + u64(row) * batch.labels}, moved, room);
}

// The derivative of a marginal along the slopes of its row.
__device__ __forceinline__ double difference(const Batch &batch, const MovedRows &moved, int row, int label) {
    u64 at = u64(row) * batch.labels + label;
    return moved.factors[row] * (moved.marginals[at] - moved.marginals[u64(batch.rows) * batch.labels + at]);
}

__device__ __forceinline__ int moved_status(const Batch &batch, const MovedRows &moved, int row) {
    return max(moved.status[row], moved.status[row + batch.rows]);
}

extern "C" __global__ void covariance_gradient(Batch batch, MovedRows moved) {
    for (int row = blockIdx.x; row < batch.rows; row += gridDim.x) {
        int status = moved_status(batch, moved, row);
        bool zero = status || moved.factors[row] == 0;
        for (int i = threadIdx.x; i < batch.labels; i += blockDim.x)
            batch.gradient[u64(row) * batch.labels + i] = zero ? SCORE(0) : SCORE(difference(batch, moved, row, i));
        if (threadIdx.x == 0) batch.status[row] = status;
    }
}

// Decides for each label with evidence whether it is clamped alone, and moves the rows whose labels go together. The status
// of the batch becomes that of the free pass, or BAD_SCORE if a code of evidence is invalid.
extern "C" __global__ void marginal_split(Batch batch, PassAnswers free, MarginalTerms terms, MovedRows moved) {
    __shared__ double room[THREADS / 32];
    __shared__ int counts[THREADS / 32];
    int labels = batch.labels;
    for (int row = blockIdx.x; row < batch.rows; row += gridDim.x) {
        u64 first = u64(row) * labels;
        LikelySlopes slopes = {free.marginals + first, batch.evidence + first};
        int likely = 0, status = free.status[row];
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            if (!is_valid(batch.scores[first + i], slopes.evidence[i])) status = BAD_SCORE;
            likely += slopes.probability(i) >= IMPROBABLE;
        }
        status = over_block(status, counts, true);
        likely = over_block(likely, counts, false);
        bool together = likely > FEW_LABELS, counted = !status && weight_of(batch, row) != 0;
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            double p = slopes.probability(i);
            bool alone = counted && p >= 0 && !(together && p >= IMPROBABLE);
            if (alone) terms.alone[1 + atomicAdd(terms.alone, 1)] = int(first) + i;
            terms.status[first + i] = alone ? ANSWERED : TOGETHER;
            terms.sums[first + i] = 0;
        }
        if (counted && together) move_row(batch, row, slopes, moved, room);
        if (threadIdx.x != 0) continue;
        batch.status[row] = status;
        if (counted && together) {
            int at = atomicAdd(terms.together, 2);
            terms.together[1 + at] = row;
            terms.together[2 + at] = row + batch.rows;
        } else moved.factors[row] = 0;
    }
}

// Adds the terms of each row up.
extern "C" __global__ void marginal_loss(Batch batch, PassAnswers free, MarginalTerms terms, MovedRows moved) {
    __shared__ double room[THREADS / 32];
    __shared__ int counts[THREADS / 32];
    int labels = batch.labels;
    for (int row = blockIdx.x; row < batch.rows; row += gridDim.x) {
        u64 first = u64(row) * labels;
        LikelySlopes slopes = {free.marginals + first, batch.evidence + first};
        double weight = weight_of(batch, row), loss = 0;
        bool together = moved.factors[row] > 0, counted = !batch.status[row] && weight != 0;
        int status = together ? moved_status(batch, moved, row) : batch.status[row], alone = 0;
        for (int i = threadIdx.x; i < labels && counted; i += blockDim.x) {
            double p = slopes.probability(i);
            if (terms.status[first + i] != TOGETHER) {
                alone++;
                status = max(status, terms.status[first + i]);
                loss -= terms.log_partition[first + i] - free.log_partition[row];
            } else if (p >= 0) loss -= log(p);
        }
        // A barrier of over_block lies between the last reading of the batch's status and its writing.
        alone = over_block(alone, counts, false);
        status = over_block(status, counts, true);
        loss = over_block(loss, room, false);
        for (int i = threadIdx.x; i < labels; i += blockDim.x) {
            // Log-probabilities rise along this.
            double rise = 0;
            if (counted && alone) rise += double(terms.sums[first + i]) * SUM_UNIT - alone * double(free.marginals[first + i]);
            if (counted && together) rise += difference(batch, moved, row, i);
            batch.gradient[first + i] = status || !counted ? SCORE(0) : SCORE(-weight * rise);
        }
        if (threadIdx.x == 0) {
            batch.losses[row] = weight == 0 ? SCORE(0) : SCORE(weight * (status ? loss_without(status) : loss));
            batch.status[row] = status;
        }
    }
}
