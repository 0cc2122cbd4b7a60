// Numbers and small helpers that all kernels share. REAL is the type of the arithmetic, SCORE that of scores and
// marginals in memory; both are given to the compiler. No header is included: NVRTC has none.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;

// What became of a row.
#define ANSWERED 0
#define OUT_OF_RANGE 1
#define IMPOSSIBLE 2
#define BAD_SCORE 3

#define LN_2 0.69314718055994530942
#define QUIET_NAN __longlong_as_double(0x7ff8000000000000LL)
#define MINUS_INFINITY __longlong_as_double(0xfff0000000000000LL)

// Scores beyond this are refused, as on the processor; NaN compares false.
__device__ __forceinline__ bool is_usable(float score) { return fabsf(score) <= 1e30f; }
__device__ __forceinline__ bool is_usable(double score) { return fabs(score) <= 1e30; }

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
__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }

// Starts to bring a record near, without a register to wait in.
template <class T> __device__ __forceinline__ void bring(const T *record) {
#ifdef __CUDACC_RTC__
    asm volatile("prefetch.global.L1 [%0];" ::"l"(record));
#endif
}

// A sum or the largest number over the threads of a block, the same in every thread. `room` has a place for each warp.
template <class T> __device__ __forceinline__ T over_block(T x, T *room, bool most) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        T other = __shfl_xor_sync(0xffffffffu, x, step);
        x = most ? larger(x, other) : x + other;
    }
    if (lane == 0) room[warp] = x;
    __syncthreads();
    x = room[0];
    for (int w = 1; w < blockDim.x / 32; w++) x = most ? larger(x, room[w]) : x + room[w];
    __syncthreads();
    return x;
}

// Which row of the scores a row of the launch reads, and whether its evidence counts. A launch answers `rows` rows, all
// free or all with their evidence; or, to train, first all of them free and then all of them clamped. A list picks rows
// that are done again.
struct Rows {
    const SCORE *scores;
    const i8 *evidence;
    SCORE *marginals;
    double *log_partition;
    int *status;
    // Rows to do, where only some are: their number and their indices, in device memory.
    const int *listed;
    // Where rows are listed that need a wider type: their number, then their indices; or null.
    int *again;
    int rows;
    // Rows from this on are clamped, those before it are free.
    int clamped_from;
    // Rows of scores and of evidence: a row of the launch reads its index modulo these.
    int scored, known;
};

// What is known of a row's labels, or null.
__device__ __forceinline__ const i8 *known_of(const Rows &rows, int row, int labels) {
    return rows.evidence && row >= rows.clamped_from ? rows.evidence + u64(row % rows.known) * labels : nullptr;
}

// Evidence as it lies in memory (1 on, 0 off, -1 unknown) as 1 on, -1 off, 0 unknown; 2 is neither.
__device__ __forceinline__ int read_known(i8 entry) {
    return entry == -1 ? 0 : entry == 0 ? -1 : entry == 1 ? 1 : 2;
}

__device__ __forceinline__ int rows_to_do(const Rows &rows) { return rows.listed ? rows.listed[0] : rows.rows; }
__device__ __forceinline__ int row_at(const Rows &rows, int at) { return rows.listed ? rows.listed[1 + at] : at; }
