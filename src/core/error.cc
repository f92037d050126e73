#include "core/error.h"

namespace laconic {

const char* name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::unsupported:
      return "unsupported";
    case Code::mismatch:
      return "ranks disagree";
    case Code::corrupt:
      return "corrupt frame";
    case Code::too_small:
      return "buffer too small";
    case Code::transport:
      return "transport failure";
    case Code::io:
      return "file error";
    case Code::internal:
      return "internal error";
  }
  return "unknown error";
}

}  // namespace laconic
