/* The public header compiles as C, and its macros work there. Returns 0 when they do. */
#include <laconic/laconic.h>

int api_header_in_c(void);

int api_header_in_c(void) {
  laconic_options options = LACONIC_OPTIONS_INIT;
  const float x[3] = {1.0F, 2.0F, 3.0F};
  float y[3] = {0};
  unsigned char stream[256];
  size_t written = 0;
  options.bound = "1e-3";
  if (options.struct_size != sizeof options || LACONIC_IN_PLACE == (const void*)x) return 1;
  if (laconic_compress(x, 3, LACONIC_F32, stream, sizeof stream, &written, &options) != LACONIC_OK) return 2;
  if (laconic_decompress(stream, written, y, 3, LACONIC_F32, 0) != LACONIC_OK) return 3;
  return y[2] > 2.99F && y[2] < 3.01F ? 0 : 4;
}
