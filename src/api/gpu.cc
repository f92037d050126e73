// Arrays in the memory of a GPU, for the C interface. Compiled where CUDA's headers are.
#include <laconic/laconic_gpu.h>

#include "api/arguments.h"
#include "gpu/device_memory.h"

int laconic_comm_use_device(laconic_comm* comm, laconic_stream stream) {
  return laconic::api::guarded([&] {
    laconic::api::required(comm);
    if (comm->memory == nullptr) {
      auto memory = std::make_unique<laconic::gpu::DeviceMemory>();
      memory->use(stream);
      comm->lay_arrays_in(std::move(memory));
    } else {
      static_cast<laconic::gpu::DeviceMemory&>(*comm->memory).use(stream);
    }
  });
}
