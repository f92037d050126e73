/* Stands in for ROCm's runtime (libhsa-runtime64.so.1): memory is a GPU's where the program has said so. */
#include <stddef.h>
#include <stdint.h>

static uintptr_t first;
static size_t bytes;

void stand_in_device(void* at, size_t n) {
  first = (uintptr_t)at;
  bytes = n;
}

enum { SUCCESS = 0, INVALID_ARGUMENT = 0x1001, UNKNOWN = 0, HSA = 1, DEVICE = 17, CPU_AGENT = 7, GPU_AGENT = 8 };

typedef struct {
  uint32_t bytes, type;
  void *of_agent, *of_host;
  size_t size;
  void* user_data;
  uint64_t owner;
  uint32_t flags; /* since then */
} pointer_info;

int hsa_amd_pointer_info(uintptr_t at, pointer_info* info, void* (*allocate)(size_t), uint32_t* agents, uint64_t** to) {
  if (info->bytes < offsetof(pointer_info, flags) || allocate != NULL || agents != NULL || to != NULL)
    return INVALID_ARGUMENT;
  info->type = at < first || at - first >= bytes ? UNKNOWN : HSA;
  info->owner = info->type == HSA ? GPU_AGENT : CPU_AGENT;
  return SUCCESS;
}

int hsa_agent_get_info(uint64_t agent, int attribute, uint32_t* value) {
  if (attribute != DEVICE) return INVALID_ARGUMENT;
  *value = agent == GPU_AGENT;
  return SUCCESS;
}
