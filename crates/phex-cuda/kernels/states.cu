// A softmax over the legal states of a hard model, between two 0/1 matrices: s = S l, p = softmax(s), marginals = S' p.
//
// A block has a row: its scores and the weights of its states lie in shared memory (SHARED), or in the block's part of
// global memory. Threads are states, then labels. Scores are only added and compared before the softmax, so any finite
// score is safe. Cost a row: O(labels on, summed over states).

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
        u64 first = u64(row % rows.scored) * s.labels;
        const i8 *known = known_of(rows, row, s.labels);
        __syncthreads();
        if (threadIdx.x == 0) bad = needed = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < s.labels; i += blockDim.x) {
            SCORE score = rows.scores[first + i];
            if (!is_usable(score)) {
                bad = 1;
                score = 0;
            }
            scores[i] = REAL(score) + s.bias[i];
            int told = known ? read_known(known[i]) : 0;
            if (told > 1) bad = 1;
            if (told > 0) atomicAdd(&needed, 1);
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
                if (known) {
                    found += known[label] == 1;
                    off |= known[label] == 0;
                }
            }
            if (known && (off || found < needed)) sum = none;
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
            // Many small numbers: a sum in single precision would lose the last of them.
            double sum = 0;
            for (int j = s.label_start[i]; j < s.label_start[i + 1]; j++) sum += double(weights[s.label_states[j]]);
            sum *= scale;
            rows.marginals[u64(row) * s.labels + i] = status ? SCORE(QUIET_NAN) : SCORE(fmin(sum, 1.0));
        }
        if (threadIdx.x == 0) {
            double value = possible ? s.base + double(most) + log(total) : MINUS_INFINITY;
            rows.log_partition[row] = bad ? QUIET_NAN : value;
            rows.status[row] = status;
        }
    }
}
