// Loads a program that was made a library, as Python loads its modules: for itself alone, NCCL with it. Arguments: the
// library, and those of its program.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  int devices = 0;
  cudaGetDeviceCount(&devices);  // CUDA is there for all
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const program = library != nullptr ? dlsym(library, "_Z7programiPPc") : nullptr;
  if (program == nullptr) {
    std::printf("%s\n", argc > 1 ? dlerror() : "which library?");
    return 1;
  }
  return reinterpret_cast<int (*)(int, char**)>(program)(argc - 1, argv + 1);
}
