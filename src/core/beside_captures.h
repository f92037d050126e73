// How Laconic works while the program captures a stream into a CUDA graph, in another thread perhaps. Header only:
// included where CUDA's headers are.
#pragma once

#include <cuda_runtime_api.h>

namespace laconic {

/// While a stream is captured in CUDA's global mode (the default), what any thread asks of CUDA beside that (memory,
/// whether an event has passed, waiting for a stream) fails and makes the capture invalid. Not what a thread asks for
/// which one of these lives: it says that this does not belong to the graph, as nothing of Laconic's does.
class BesideCaptures {
 public:
  BesideCaptures() { exchanged_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess; }
  ~BesideCaptures() {
    if (exchanged_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool exchanged_ = false;
};

}  // namespace laconic
