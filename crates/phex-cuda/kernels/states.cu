// A softmax over the legal states of a hard model, between two products with the 0/1 matrix S of the states:
// s = S l, p = softmax(s), marginals = S' p.
//
// One row per block: its scores and the weights of its states lie in shared memory (SHARED), or in the block's part of global
// memory. A thread takes states, then labels. Before the softmax, scores are only added and compared, so any finite score is
// safe. Cost per row: O(labels that are on, summed over states).

struct States {
    // The labels that are on in each state, and the states in which each label is on.
    const int *state_start, *state_labels, *label_start, *label_states;
    const REAL *bias;
    int states, labels;
    double base;
};

extern "C" __global__ void __launch_bounds__(THREADS) states(States s, Rows rows, REAL *scratch) {
    extern __shared__ double shared_memory[];
    __shared__ REAL room[THREADS / 32];
    __shared__ double sums[THREADS / 32];
    __shared__ int bad, needed;
#ifdef SHARED
    REAL *scores = reinterpret_cast<REAL *>(shared_memory);
#else
    REAL *scores = scratch + u64(blockIdx.x) * (s.states + s.labels);
#endif
    REAL *weights = scores + s.labels;
    int to_do = rows_to_do(rows);
    for (int at = blockIdx.x; at < to_do; at += gridDim.x) {
        int row = row_at(rows, at);
        const SCORE *given = scores_of(rows, row, s.labels);
        const i8 *evidence = evidence_of(rows, row, s.labels);
        __syncthreads();
        if (threadIdx.x == 0) bad = needed = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < s.labels; i += blockDim.x) {
            int code = evidence_at(evidence, row, s.labels, i);
            bool valid = is_valid(given[i], code);
            if (!valid) bad = 1;
            scores[i] = (valid ? REAL(given[i]) : REAL(0)) + s.bias[i];
            if (is_on(code)) atomicAdd(&needed, 1);
        }
        __syncthreads();
        const REAL none = REAL(MINUS_INFINITY);
        REAL most = none;
        double total = 0;
        for (int i = threadIdx.x; i < s.states; i += blockDim.x) {
            REAL sum = 0;
            int found = 0;
            bool off = false;
            for (int j = s.state_start[i]; j < s.state_start[i + 1]; j++) {
                int label = s.state_labels[j];
                sum += scores[label];
                if (evidence) {
                    int code = evidence_at(evidence, row, s.labels, label);
                    found += is_on(code);
                    off |= is_off(code);
                }
            }
            if (off || found < needed) sum = none;
            weights[i] = sum;
            most = larger(most, sum);
        }
        most = over_block(most, room, true);
        bool possible = most > none;
        for (int i = threadIdx.x; i < s.states; i += blockDim.x) {
            REAL weight = possible ? exponential(weights[i] - most) : REAL(0);
            weights[i] = weight;
            total += double(weight);
        }
        total = over_block(total, sums, false);
        int status = bad ? BAD_SCORE : (possible ? ANSWERED : IMPOSSIBLE);
        double scale = 1 / total;
        for (int i = threadIdx.x; i < s.labels; i += blockDim.x) {
            // In doubles: a sum of many small numbers would lose the last ones in single precision.
            double sum = 0;
            for (int j = s.label_start[i]; j < s.label_start[i + 1]; j++) sum += double(weights[s.label_states[j]]);
            sum *= scale;
            store_marginal(rows, row, s.labels, i, status ? SCORE(QUIET_NAN) : SCORE(fmin(sum, 1.0)));
        }
        if (threadIdx.x == 0) {
            double value = possible ? s.base + double(most) + log(total) : MINUS_INFINITY;
            rows.log_partition[row] = bad ? QUIET_NAN : value;
            rows.status[row] = status;
        }
    }
}
