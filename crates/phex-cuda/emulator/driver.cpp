// A CUDA driver and compiler for machines without a GPU: the calls of libcuda and NVRTC that phex makes, on the CPU. The C++
// compiler compiles kernels, with runtime.h in front of them. For tests of answers and of failures, not of speed.
//
// Environment variables:
//   EMULATOR_MEMORY           bytes of device memory
//   EMULATOR_MULTIPROCESSORS  number of multiprocessors
//   EMULATOR_SHARED           bytes of shared memory per block
//   EMULATOR_DRIVER           version of the driver, such as 12040; the compiler has version 99.0
//   EMULATOR_ORDER            order of threads: see runtime.h
//   EMULATOR_CXX              the C++ compiler
//   EMULATOR_HOME             the folder of runtime.h
//   EMULATOR_NVRTC            NVIDIA's compiler library, which needs no GPU: kernels that it rejects fail with its message

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, ILLEGAL_ADDRESS = 700 };

long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

struct Function {
    void (*launch)(unsigned, unsigned, size_t, void **);
};

std::mutex lock;
constexpr size_t GUARD = 256;
std::map<uint64_t, size_t> allocations;
size_t used = 0;

size_t memory_size() { return size_t(setting("EMULATOR_MEMORY", 2L << 30)); }

struct Program {
    std::string text, name, log;
    std::vector<char> image;
};

const char MAGIC[8] = {'E', 'M', 'U', 'L', 'A', 'T', 'E', 'D'};

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

std::string folder() {
    static const std::string made = [] {
        std::string name = (std::filesystem::temp_directory_path() / "phex-emulator-XXXXXX").string();
        return std::string(mkdtemp(name.data()));
    }();
    static struct Cleaner {
        ~Cleaner() {
            std::error_code ignored;
            std::filesystem::remove_all(made, ignored);
        }
    } cleaner;
    return made;
}

// Why NVIDIA's compiler rejects a program; empty if it accepts it, or is not there. In a process of its own, because this
// library defines the same names.
std::string rejected(const std::string &text, const std::string &base, int count, const char *const *options) {
    const char *library = getenv("EMULATOR_NVRTC");
    Dl_info here;
    if (!library || !*library || !dladdr(reinterpret_cast<void *>(&setting), &here)) return "";
    std::ofstream(base + ".cu") << text;
    std::filesystem::path check = std::filesystem::path(here.dli_fname).parent_path() / "nvrtc-check";
    std::string command = "LD_LIBRARY_PATH='" + std::filesystem::path(library).parent_path().string() + "' '" + check.string() + "' '" +
        library + "' " + base + ".cu";
    for (int i = 0; i < count; i++) command += std::string(" '") + options[i] + "'";
    bool accepted = system((command + " > " + base + ".log 2>&1").c_str()) == 0;
    return accepted ? "" : "NVRTC: " + read_file(base + ".log");
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return SUCCESS; }
int cuDriverGetVersion(int *version) { return *version = int(setting("EMULATOR_DRIVER", 99000)), SUCCESS; }
int cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, SUCCESS; }
int cuDeviceGetName(char *name, int length, int) { return snprintf(name, size_t(length), "emulated"), SUCCESS; }
int cuDeviceGetAttribute(int *value, int which, int) {
    switch (which) {
    case 16: return *value = int(setting("EMULATOR_MULTIPROCESSORS", 132)), SUCCESS;
    case 75: return *value = 9, SUCCESS;
    case 76: return *value = 0, SUCCESS;
    case 97: return *value = int(setting("EMULATOR_SHARED", 232448)), SUCCESS;
    default: return *value = 0, SUCCESS;
    }
}
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &used, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
int cuCtxSetCurrent(void *) { return SUCCESS; }
int cuStreamCreate(void **stream, unsigned) { return *stream = &used, SUCCESS; }
int cuStreamDestroy_v2(void *) { return SUCCESS; }
int cuStreamSynchronize(void *) { return SUCCESS; }
int cuGetErrorString(int error, const char **text) {
    return *text = error == OUT_OF_MEMORY ? "out of memory" : "an emulated error", SUCCESS;
}
int cuGetErrorName(int error, const char **text) {
    return *text = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_EMULATED", SUCCESS;
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    std::lock_guard guard(lock);
    *total = memory_size();
    *available = *total > used ? *total - used : 0;
    return SUCCESS;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
    std::lock_guard guard(lock);
    if (used + bytes > memory_size()) return OUT_OF_MEMORY;
    char *memory = static_cast<char *>(aligned_alloc(256, (bytes + GUARD + 255) / 256 * 256));
    if (!memory) return OUT_OF_MEMORY;
    // Only the start of large pieces is filled, so that their pages need not exist.
    memset(memory, 0xff, bytes < (1 << 26) ? bytes : 1 << 26);
    memset(memory + bytes, 0xff, GUARD);
    *pointer = reinterpret_cast<uint64_t>(memory);
    allocations[*pointer] = bytes;
    used += bytes;
    return SUCCESS;
}
int cuMemFree_v2(uint64_t pointer) {
    std::lock_guard guard(lock);
    auto found = allocations.find(pointer);
    if (found == allocations.end()) return INVALID_VALUE;
    char *memory = reinterpret_cast<char *>(pointer);
    for (size_t i = 0; i < GUARD; i++)
        if (memory[found->second + i] != char(0xff)) {
            fprintf(stderr, "emulator: a write %zu bytes beyond %zu of device memory\n", i, found->second);
            abort();
        }
    used -= found->second;
    allocations.erase(found);
    free(memory);
    return SUCCESS;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    return memcpy(reinterpret_cast<void *>(to), from, bytes), SUCCESS;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) { return cuMemcpyHtoD_v2(to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
    return memcpy(to, reinterpret_cast<void *>(from), bytes), SUCCESS;
}
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void *) {
    return memset(reinterpret_cast<void *>(at), value, bytes), SUCCESS;
}

// An image is a magic word, a length and a shared library.
int cuModuleLoadData(void **module, const void *image) {
    const char *bytes = static_cast<const char *>(image);
    if (memcmp(bytes, MAGIC, sizeof MAGIC) != 0) return INVALID_IMAGE;
    uint64_t length;
    memcpy(&length, bytes + sizeof MAGIC, sizeof length);
    std::lock_guard guard(lock);
    static int count = 0;
    std::string path = folder() + "/module" + std::to_string(count++) + ".so";
    std::ofstream(path, std::ios::binary).write(bytes + 16, std::streamsize(length));
    *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "emulator: %s\n", dlerror());
    return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleGetFunction(void **function, void *module, const char *) {
    auto launch = reinterpret_cast<void (*)(unsigned, unsigned, size_t, void **)>(dlsym(module, "emulated_launch"));
    if (!launch) return INVALID_IMAGE;
    *function = new Function{launch};
    return SUCCESS;
}
int cuFuncGetAttribute(int *value, int, void *) { return *value = 0, SUCCESS; }
int cuFuncSetAttribute(void *, int, int) { return SUCCESS; }
int cuLaunchKernel(void *function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned shared,
                   void *, void **arguments, void **) {
    // A kernel has one set of fibers and barriers, so there is one launch at a time.
    static std::mutex launches;
    std::lock_guard guard(launches);
    if (long(shared) > setting("EMULATOR_SHARED", 232448) || block > 1024) return INVALID_VALUE;
    static_cast<Function *>(function)->launch(grid, block, shared, arguments);
    return SUCCESS;
}

int nvrtcVersion(int *major, int *minor) { return *major = 99, *minor = 0, 0; }
int nvrtcCreateProgram(void **program, const char *text, const char *name, int, const char *const *, const char *const *) {
    std::string kernel = name ? name : "kernel.cu";
    *program = new Program{text, kernel.substr(0, kernel.rfind('.')), "", {}};
    return 0;
}
int nvrtcDestroyProgram(void **program) { return delete static_cast<Program *>(*program), *program = nullptr, 0; }
int nvrtcCompileProgram(void *handle, int count, const char *const *options) {
    Program &program = *static_cast<Program *>(handle);
    static int made = 0;
    std::string base;
    {
        std::lock_guard guard(lock);
        base = folder() + "/program" + std::to_string(made++);
    }
    program.log = rejected(program.text, base, count, options);
    if (!program.log.empty()) return 6;
    std::string text = std::regex_replace(program.text, std::regex(R"(extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];)"), "EMULATED_SHARED($1, $2);");
    // At file scope the address would be read before it is known.
    text = std::regex_replace(text, std::regex(R"(\nEMULATED_SHARED\((\w+), (\w+)\);)"), "\n#define $2 (emulator::shared)");
    std::string defines;
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], "-D", 2) == 0) defines += std::string(" '") + options[i] + "'";
    std::ofstream(base + ".cpp") << "#include \"runtime.h\"\n" << text
        << "\nstatic void emulated_kernel(void **arguments) { emulator::call(&" << program.name << ", arguments); }\n"
        << "extern \"C\" void emulated_launch(unsigned grid, unsigned block, size_t shared, void **arguments) {\n"
        << "    emulator::launch(&emulated_kernel, grid, block, shared, arguments);\n}\n";
    const char *compiler = getenv("EMULATOR_CXX"), *home = getenv("EMULATOR_HOME");
    std::string command = std::string(compiler ? compiler : "g++ -O1") + " -std=c++17 -pedantic-errors -fno-strict-aliasing -shared -fPIC" +
        defines + " -I'" + (home ? home : EMULATOR_HOME) + "' -o " + base + ".so " + base + ".cpp 2> " + base + ".log";
    bool compiled = system(command.c_str()) == 0;
    program.log = read_file(base + ".log");
    if (!compiled) return 6;
    std::string library = read_file(base + ".so");
    uint64_t length = library.size();
    program.image.assign(MAGIC, MAGIC + sizeof MAGIC);
    program.image.insert(program.image.end(), reinterpret_cast<char *>(&length), reinterpret_cast<char *>(&length) + 8);
    program.image.insert(program.image.end(), library.begin(), library.end());
    return 0;
}
int nvrtcGetProgramLogSize(void *program, size_t *size) { return *size = static_cast<Program *>(program)->log.size() + 1, 0; }
int nvrtcGetProgramLog(void *program, char *log) { return strcpy(log, static_cast<Program *>(program)->log.c_str()), 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) { return *size = static_cast<Program *>(program)->image.size(), 0; }
int nvrtcGetCUBIN(void *program, char *image) {
    auto &made = static_cast<Program *>(program)->image;
    return memcpy(image, made.data(), made.size()), 0;
}
const char *nvrtcGetErrorString(int) { return "an emulated error"; }
}
