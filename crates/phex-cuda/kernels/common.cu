// The shared part of all kernels: number types, the status of a row, evidence, and the rows of a launch.
//
// The host defines for the compiler: SCORE, the type of scores and marginals in memory; REAL, the type of the arithmetic;
// THREADS, the threads of a block; SCORE_LIMIT, from phex::numeric; SINGLE_LABELS for a kernel whose rows are single labels,
// which is compiled apart so that it takes no registers from the others. NVRTC has no headers to include.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;

// What became of a row. Where a row has several, the largest counts.
#define ANSWERED 0
#define OUT_OF_RANGE 1
#define IMPOSSIBLE 2
#define BAD_SCORE 3

#define ALL_LANES 0xffffffffu
#define LN_2 0.69314718055994530942
#define QUIET_NAN __longlong_as_double(0x7ff8000000000000LL)
#define MINUS_INFINITY __longlong_as_double(0xfff0000000000000LL)

// Evidence has the codes of phex::infer::Evidence everywhere: 1 on, 0 off, -1 unknown.
#define UNKNOWN -1

__device__ __forceinline__ bool is_on(int evidence) { return evidence == 1; }
__device__ __forceinline__ bool is_off(int evidence) { return evidence == 0; }
__device__ __forceinline__ bool is_unknown(int evidence) { return evidence == UNKNOWN; }

// NaN compares false.
__device__ __forceinline__ bool is_usable(float score) { return fabsf(score) <= float(SCORE_LIMIT); }
__device__ __forceinline__ bool is_usable(double score) { return fabs(score) <= double(SCORE_LIMIT); }

// Rejects what the CPU rejects: a score that is not finite or too large, and any other code of evidence. A row that has either
// is a BAD_SCORE.
template <class T> __device__ __forceinline__ bool is_valid(T score, int evidence) {
    return is_usable(score) && (is_on(evidence) || is_off(evidence) || is_unknown(evidence));
}

// A power of two 2^-e that brings a positive number into [1, 2), and e.
__device__ __forceinline__ float power_of_two(float x, int &exponent) {
    int e = min(int(__float_as_uint(x) >> 23), 253);
    exponent += e - 127;
    return __uint_as_float(u32(254 - e) << 23);
}

__device__ __forceinline__ double power_of_two(double x, int &exponent) {
    int e = min(int(u64(__double_as_longlong(x)) >> 52), 2045);
    exponent += e - 1023;
    return __longlong_as_double((long long)(u64(2046 - e) << 52));
}

__device__ __forceinline__ float larger(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ double larger(double x, double y) { return fmax(x, y); }
__device__ __forceinline__ int larger(int x, int y) { return max(x, y); }
__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }

// The sum, or the largest, of a number over the threads of a block; all threads get it. `room` has a place for each warp.
template <class T> __device__ __forceinline__ T over_block(T x, T *room, bool most) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        T other = __shfl_xor_sync(ALL_LANES, x, step);
        x = most ? larger(x, other) : x + other;
    }
    if (lane == 0) room[warp] = x;
    __syncthreads();
    x = room[0];
    for (int w = 1; w < blockDim.x / 32; w++) x = most ? larger(x, room[w]) : x + room[w];
    __syncthreads();
    return x;
}

// The rows of a launch. Row i reads row i % score_rows of the scores and, from `clamped_from` on, row i % evidence_rows of the
// evidence. So a launch does rows that are free, rows with their evidence, or to train first all of them free and then all
// of them clamped.
#ifdef SINGLE_LABELS
#define IS_SINGLE true
#else
#define IS_SINGLE false
#endif

struct Rows {
    const SCORE *scores;
    const i8 *evidence;
    SCORE *marginals;
    double *log_partition;
    int *status;
    // Where only the device knows which rows to do: their number, and their indices. Without indices the first ones.
    const int *count, *listed;
    // Rows that need a wider type are listed here: their number, then their indices. Or null.
    int *again;
    // With SINGLE_LABELS, row i is label i % labels of row i / labels of the scores: of the evidence only that label counts. The
    // marginals are added to row i / labels of these sums: see store_marginal.
    u64 *sums;
    int rows, clamped_from, score_rows, evidence_rows;
};

__device__ __forceinline__ int rows_to_do(const Rows &rows) { return rows.count ? *rows.count : rows.rows; }
__device__ __forceinline__ int row_at(const Rows &rows, int at) { return rows.listed ? rows.listed[at] : at; }

// The scores of a row.
__device__ __forceinline__ const SCORE *scores_of(const Rows &rows, int row, int labels) {
    return rows.scores + u64(IS_SINGLE ? row / labels : row % rows.score_rows) * labels;
}

// The codes of a row's evidence, or null.
__device__ __forceinline__ const i8 *evidence_of(const Rows &rows, int row, int labels) {
    if (IS_SINGLE) return rows.evidence + u64(row / labels) * labels;
    return rows.evidence && row >= rows.clamped_from ? rows.evidence + u64(row % rows.evidence_rows) * labels : nullptr;
}

// The evidence of a label in a row, from the codes of the row.
__device__ __forceinline__ int evidence_at(const i8 *codes, int row, int labels, int label) {
    bool counts = codes && (!IS_SINGLE || row % labels == label);
    return counts ? int(codes[label]) : UNKNOWN;
}

// The unit of sums of marginals. The sums are integers, so that the order of additions does not change them; 65,536 ones fit.
#define SUM_UNIT (1.0 / (1ull << 48))

// Writes a marginal, NaN in a row without an answer; or adds it, if it is a number.
__device__ __forceinline__ void store_marginal(const Rows &rows, int row, int labels, int label, SCORE p) {
    if (!IS_SINGLE) rows.marginals[u64(row) * labels + label] = p;
    else if (p > 0) atomicAdd(rows.sums + u64(row / labels) * labels + label, u64(double(p) / SUM_UNIT + 0.5));
}
