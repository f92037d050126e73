// Needs no GPU: a communicator that Laconic has nothing for.
#include <laconic/laconic_nccl.h>

#include <cstdio>
#include <laconic/laconic.hpp>

int main() {
  laconic::check(laconic_nccl_release(nullptr));
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return 1;
  std::printf("released; NCCL %d\n", version);
}
