// Writes the seed corpus of decode_fuzz into a folder: small frames of every dtype, grid and kind of chunk.
#include <cstdio>
#include <fstream>

#include "codec/codec_cases.h"

using namespace laconic;        // NOLINT(google-build-using-namespace)
using namespace laconic::test;  // NOLINT(google-build-using-namespace)

namespace {

void write(const std::string& folder, int number, const Outcome& f) {
  char name[32];
  std::snprintf(name, sizeof name, "/seed_%03d", number);
  std::ofstream out(folder + name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(f.frame.data()), static_cast<std::streamsize>(f.frame.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds <folder>\n");
    return 2;
  }
  int number = 0;
  for (const DType t : all_dtypes)
    for (const Grid& g : grids_of(t))
      for (const Kind kind : {Kind::smooth, Kind::several_fills, Kind::nan_and_infinity, Kind::constant, Kind::mixed}) {
        const std::size_t count = kind == Kind::smooth ? 2048 : 300;
        const Array x = sample(t, kind, count);
        const Outcome f = encoded(x, g);
        if (f.frame.size() < 3000) write(argv[1], number++, f);
        if (kind != Kind::smooth && kind != Kind::mixed) continue;
        const Outcome sum = added(x, f, encoded(sample(t, Kind::fill_runs, count), g));
        if (sum.code == Code::ok && sum.frame.size() < 4000) write(argv[1], number++, sum);
      }
  for (const Codec* codec : built_codecs()) {
    if (codec->id() == CodecId::slice) continue;
    for (const DType t : {DType::f32, DType::f64})
      for (const Kind kind : {Kind::smooth, Kind::mixed}) {
        const Grid g = grids_for(*codec, t).back();
        write(argv[1], number++, encoded_by(*codec, sample(t, kind, 300), grid_for(*codec, g)));
      }
  }
  std::printf("%d seeds\n", number);
  return 0;
}
