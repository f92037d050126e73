/* Arrays in the memory of a GPU. In all libraries that were built with CUDA. See docs/guide.md.
 *
 *   laconic_comm_use_device(comm, stream);
 *   laconic_allreduce(LACONIC_IN_PLACE, gradients, n, LACONIC_F32, LACONIC_AVERAGE, comm, &options);
 */
/* NOLINTBEGIN(modernize-*): this is C */
#ifndef LACONIC_LACONIC_GPU_H
#define LACONIC_LACONIC_GPU_H

#include <laconic/laconic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's cudaStream_t, so that its headers need not be there. */
typedef struct CUstream_st* laconic_stream;

/* From now on every array of comm's calls lies in the memory of the current device, which must be current in those
 * calls too, and their work is done on `stream`, after what that has been given before. To be called before the
 * communicator's first call and then again, for another stream, before any call; it is cheap. Ranks of one communicator
 * may differ, and have arrays on the host. A call returns when its result is there: the host has to know how long
 * messages are. Non-blocking collectives come after what `stream` has been given when they are made and do their work
 * on one of their own; results are there when laconic_wait or laconic_test says so, and arrays are not to be touched
 * before, by no stream. (Non-blocking messages are LACONIC_UNSUPPORTED, and so is a stream that is being captured into
 * a graph.) f32, f64, f16 and bf16 are compressed on the device; other dtypes, exact results and other codecs than
 * slice are copied to the host and done there. */
int laconic_comm_use_device(laconic_comm* comm, laconic_stream stream);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*) */
