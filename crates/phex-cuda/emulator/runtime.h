// What a kernel needs to be compiled for the CPU: the types and functions of CUDA that the kernels use, and a block of threads
// to run them.
//
// The threads of a block are fibers of one CPU thread. They switch only at barriers, and their order can be chosen
// (EMULATOR_ORDER: 0 ascending, 1 descending, otherwise the seed of a shuffle in every round). So code that lacks a barrier
// reads what has not been written yet. Blocks run one after another. Shared memory and allocations start as NaNs. Cost: about
// 10 ns per switch.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __shared__ static
#define __restrict__
#define __align__(n) alignas(n)
#define __launch_bounds__(...)

struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct uchar4 { unsigned char x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct dim3 { unsigned x, y, z; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace emulator {

struct Fiber {
    void *stack_pointer;
    char *stack;
    dim3 thread;
    bool done;
    // The barrier that it waits at: how often that was passed, and how often it was when the fiber arrived.
    const int *passes;
    int seen;
};

constexpr int MOST_THREADS = 1024, WARP = 32;
constexpr size_t STACK = 256 * 1024;

static Fiber fibers[MOST_THREADS];
static void *scheduler_stack;
static Fiber *current;
static int threads;
static dim3 block_index, block_size, grid_size;
static double *shared;
// Arrivals at the barriers, how often each was passed, and how many threads have not ended.
static int arrived, passed, alive, warp_arrived[WARP], warp_passed[WARP], warp_alive[WARP];
static uint64_t exchange[MOST_THREADS];
static bool moved;
static void (*body)(void **);
static void **body_arguments;

// Saves the registers that a call preserves on this stack, and continues on another.
extern "C" void emulator_switch(void **save, void *load);
asm(R"(
.text
.type emulator_switch, @function
emulator_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

inline void pause() { emulator_switch(&current->stack_pointer, scheduler_stack); }

inline void barrier(int &arrivals, int &passes, const int &expected) {
    int mine = passes;
    moved = true;
    if (++arrivals >= expected) {
        arrivals = 0;
        passes++;
        return;
    }
    current->passes = &passes;
    current->seen = mine;
    pause();
    current->passes = nullptr;
}

inline void release(int &arrivals, int &passes, int expected) {
    if (expected > 0 && arrivals >= expected) {
        arrivals = 0;
        passes++;
    }
}

static void begin() {
    body(body_arguments);
    int warp = current->thread.x / WARP;
    current->done = moved = true;
    // The threads at a barrier no longer wait for this one.
    release(arrived, passed, --alive);
    release(warp_arrived[warp], warp_passed[warp], --warp_alive[warp]);
    for (;;) pause();
}

inline void warp_barrier() {
    int warp = current->thread.x / WARP;
    barrier(warp_arrived[warp], warp_passed[warp], warp_alive[warp]);
}

template <class T> T from_lane(T value, int lane) {
    static_assert(sizeof(T) <= 8);
    int warp = current->thread.x / WARP * WARP;
    memcpy(&exchange[current->thread.x], &value, sizeof(T));
    warp_barrier();
    T other;
    memcpy(&other, &exchange[warp + lane % WARP], sizeof(T));
    warp_barrier();
    return other;
}

inline void run_block(uint64_t &random, long order) {
    static int turn[MOST_THREADS];
    for (int i = 0; i < threads; i++) {
        Fiber &fiber = fibers[i];
        fiber.thread = {unsigned(i), 0, 0};
        fiber.done = false;
        fiber.passes = nullptr;
        // Registers, the address to continue at, and a stack as after a call.
        void **top = reinterpret_cast<void **>(fiber.stack + STACK - 64);
        *--top = nullptr;
        *--top = reinterpret_cast<void *>(&begin);
        for (int r = 0; r < 6; r++) *--top = nullptr;
        fiber.stack_pointer = top;
        turn[i] = order == 1 ? threads - 1 - i : i;
    }
    arrived = passed = 0;
    alive = threads;
    for (int w = 0; w < WARP; w++) {
        warp_arrived[w] = warp_passed[w] = 0;
        int left = threads - w * WARP;
        warp_alive[w] = left < 0 ? 0 : left > WARP ? WARP : left;
    }
    while (alive > 0) {
        for (int i = threads - 1; order > 1 && i > 0; i--) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            std::swap(turn[i], turn[(random >> 33) % (i + 1)]);
        }
        moved = false;
        for (int i = 0; i < threads; i++) {
            current = &fibers[turn[i]];
            bool waits = current->passes && *current->passes == current->seen;
            if (!current->done && !waits) emulator_switch(&scheduler_stack, current->stack_pointer);
        }
        if (!moved && alive > 0) {
            fprintf(stderr, "emulator: %d threads wait for each other\n", alive);
            abort();
        }
    }
}

// Runs a kernel: a grid of blocks, and bytes of shared memory.
inline void launch(void (*kernel)(void **), unsigned blocks, unsigned block_threads, size_t bytes, void **arguments) {
    const char *order_text = getenv("EMULATOR_ORDER");
    long order = order_text ? atol(order_text) : 1;
    uint64_t random = uint64_t(order);
    constexpr size_t GUARD = 256;
    char *memory = static_cast<char *>(aligned_alloc(256, (bytes + 2 * GUARD + 255) / 256 * 256));
    threads = int(block_threads);
    block_size = {block_threads, 1, 1};
    grid_size = {blocks, 1, 1};
    body = kernel;
    body_arguments = arguments;
    shared = reinterpret_cast<double *>(memory);
    for (int i = 0; i < threads; i++)
        if (!fibers[i].stack)
            fibers[i].stack = static_cast<char *>(
                mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (unsigned b = 0; b < blocks; b++) {
        block_index = {b, 0, 0};
        memset(memory, 0xff, bytes + GUARD);
        run_block(random, order);
        for (size_t i = 0; i < GUARD; i++)
            if (memory[bytes + i] != char(0xff)) {
                fprintf(stderr, "emulator: a write %zu bytes beyond shared memory\n", i);
                abort();
            }
    }
    free(memory);
}

template <class... A, size_t... I>
inline void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<A> *>(arguments[I])...);
}

template <class... A> inline void call(void (*kernel)(A...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emulator

#define threadIdx (emulator::current->thread)
#define blockIdx (emulator::block_index)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)
#define EMULATED_SHARED(type, name) type *const name = reinterpret_cast<type *>(emulator::shared)

inline void __syncthreads() { emulator::barrier(emulator::arrived, emulator::passed, emulator::alive); }
inline void __syncwarp(unsigned = ~0u) { emulator::warp_barrier(); }
template <class T> inline T __shfl_xor_sync(unsigned, T x, int step) {
    return emulator::from_lane(x, int(threadIdx.x % 32) ^ step);
}
template <class T> inline T __shfl_sync(unsigned, T x, int lane, int width = 32) {
    return emulator::from_lane(x, int(threadIdx.x) % 32 / width * width + (lane & (width - 1)));
}
template <class T> inline T __shfl_up_sync(unsigned, T x, int step, int width = 32) {
    int lane = int(threadIdx.x) % 32;
    return emulator::from_lane(x, lane % width >= step ? lane - step : lane);
}
template <class T> inline T __shfl_down_sync(unsigned, T x, int step) {
    int lane = int(threadIdx.x) % 32;
    return emulator::from_lane(x, lane + step < 32 ? lane + step : lane);
}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {}
inline int __any_sync(unsigned, int x) {
    for (int step = 1; step < 32; step *= 2) x |= __shfl_xor_sync(~0u, x, step);
    return x != 0;
}
template <class T> inline T __ldg(const T *at) { return *at; }
template <class T> inline T __ldcs(const T *at) { return *at; }
template <class T> inline void __stcs(T *at, T value) { *at = value; }
template <class T, class U> inline T atomicAdd(T *at, U by) { T old = *at; *at += by; return old; }
template <class T, class U> inline T atomicOr(T *at, U bits) { T old = *at; *at |= bits; return old; }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float x, float y) { return x / y; }
template <class To, class From> inline To emulated_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
using std::isinf;
using std::isnan;
