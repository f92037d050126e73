/* Stands in for CUDA's driver (libcuda.so.1): memory is a device's where the program has said so. */
#include <stddef.h>
#include <stdint.h>

static uintptr_t first;
static size_t bytes;

void stand_in_device(void* at, size_t n) {
  first = (uintptr_t)at;
  bytes = n;
}

enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };

int cuPointerGetAttribute(void* value, int attribute, uintptr_t at) {
  if (at < first || at - first >= bytes) return 1; /* CUDA_ERROR_INVALID_VALUE: none of CUDA's */
  *(unsigned*)value = attribute == MEMORY_TYPE ? 2 : 0;
  return attribute == MEMORY_TYPE || attribute == IS_MANAGED ? 0 : 1;
}
