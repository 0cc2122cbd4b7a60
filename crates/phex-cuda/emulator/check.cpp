// `nvrtc-check LIBRARY FILE OPTIONS...`: checks whether NVRTC accepts a kernel, and prints its errors. Needs no GPU.

#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int count, char **words) {
    if (count < 3) return fputs("usage: nvrtc-check LIBRARY FILE OPTIONS...\n", stderr), 2;
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    auto create = reinterpret_cast<int (*)(void **, const char *, const char *, int, const char *const *, const char *const *)>(
        dlsym(library, "nvrtcCreateProgram"));
    auto compile = reinterpret_cast<int (*)(void *, int, const char *const *)>(dlsym(library, "nvrtcCompileProgram"));
    auto log_size = reinterpret_cast<int (*)(void *, size_t *)>(dlsym(library, "nvrtcGetProgramLogSize"));
    auto get_log = reinterpret_cast<int (*)(void *, char *)>(dlsym(library, "nvrtcGetProgramLog"));
    if (!create || !compile || !log_size || !get_log) return fprintf(stderr, "%s is not NVRTC\n", words[1]), 2;
    std::ifstream file(words[2]);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    void *program = nullptr;
    if (create(&program, text.c_str(), words[2], 0, nullptr, nullptr)) return fputs("NVRTC could not create a program\n", stderr), 2;
    std::vector<const char *> options(words + 3, words + count);
    options.push_back("-fdevice-syntax-only");
    if (!compile(program, int(options.size()), options.data())) return 0;
    size_t size = 1;
    log_size(program, &size);
    std::string log(size, ' ');
    get_log(program, log.data());
    return puts(log.c_str()), 1;
}
