// The codecs besides slice, each in a file of its own. What needs a library is there only where that was found.
#pragma once

#include "codec/codec.h"

namespace laconic {

const Codec& szx_codec();
const Codec& fzlight_codec();
const Codec& zfp_codec();
const Codec& zfp_rate_codec();
const Codec& lz4_codec();
const Codec& lz4hc_codec();
const Codec& zstd_codec();

}  // namespace laconic
