// laconic inspect: checks a .lcz file completely and says what is in it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "codec/slice/slice.h"
#include "command.h"
#include "exit_code.h"
#include "frame/frame.h"
#include "io/lcz.h"
#include "report/json.h"
#include "report/progress.h"
#include "report/streams.h"
#include "report/table.h"

namespace laconic::app {
namespace {

struct Summary {
  std::vector<frame::Header> frames;
  double largest_bound = 0;
  std::uint64_t chunks = 0;
  /// Chunks by how they are stored.
  std::map<std::string, std::uint64_t> forms;
};

/// "constant", "first difference", ...
std::string form_of(const slice::Word& word) {
  static constexpr std::array kinds = {"", "constant", "raw", "fill value"};
  static constexpr std::array predictors = {"no predictor", "first difference", "second difference"};
  if (word.kind != slice::Kind::coded) return kinds[static_cast<std::size_t>(word.kind)];
  return word.valid_codes() ? predictors[static_cast<std::size_t>(word.predictor)] : "unknown";
}

std::string_view codec_name(const frame::Header& header) { return find_codec(header.codec)->name(); }

/// Counts the forms of a frame's chunks from the first word of each; other codecs than slice have none.
void survey(const std::vector<std::uint8_t>& frame, const frame::Header& header, Summary& s) {
  if (header.codec != CodecId::slice) {
    s.forms[fmt::format("of {}", codec_name(header))] += header.chunks();
    return;
  }
  const std::uint8_t* table = frame.data() + frame::header_bytes;
  std::size_t at = frame::header_bytes + slice::table_bytes(header.count);
  for (std::uint64_t c = 0; c < header.chunks(); ++c) {
    if (at + sizeof(std::uint32_t) > frame.size()) return;  // a chunk of no bytes: decoding it says what is wrong
    ++s.forms[form_of(slice::Word::unpack(slice::load<std::uint32_t>(frame.data() + at)))];
    at += std::size_t{4} * slice::load<std::uint16_t>(table + 2 * c);
  }
}

Summary read_all(LczReader& in, bool show_progress) {
  Summary s;
  Progress progress("checking", in.count(), show_progress);
  std::vector<std::uint8_t> frame;
  frame::Header header;
  while (in.next(frame, header)) {
    s.frames.push_back(header);
    s.largest_bound = std::max(s.largest_bound, header.grid.bound);
    s.chunks += header.chunks();
    survey(frame, header, s);
    // A right checksum says that nothing was damaged, not that the chunks make sense.
    if (find_codec(header.codec)->available()) in.decode(frame, header, 1, [](auto) {});
    progress.advance(header.count);
  }
  return s;
}

nlohmann::json to_json(const LczReader& in, const Summary& s) {
  nlohmann::json frames = nlohmann::json::array();
  for (const frame::Header& f : s.frames)
    frames.push_back({{"codec", codec_name(f)},
                      {"count", f.count},
                      {"bytes", f.frame_bytes},
                      {"chunks", f.chunks()},
                      {"step", f.grid.step},
                      {"bound", finite_or_null(f.grid.bound)},
                      {"operands", f.operands}});
  const auto raw = static_cast<double>(in.count() * size_of(in.shape().dtype));
  return {{"input", in.path()},
          {"valid", true},
          {"dtype", name_of(in.shape().dtype)},
          {"dims", in.shape().dims},
          {"original", in.original() == FileKind::npy ? "npy" : "raw"},
          {"count", in.count()},
          {"file_bytes", in.file_bytes()},
          {"ratio", raw / static_cast<double>(in.file_bytes())},
          {"absolute_bound", finite_or_null(s.largest_bound)},
          {"chunks", s.chunks},
          {"chunk_forms", s.forms},
          {"frames", frames}};
}

void print_text(const LczReader& in, const Summary& s) {
  const auto raw = static_cast<double>(in.count() * size_of(in.shape().dtype));
  fmt::print("{}: valid, every checksum matches\n", printable(in.path()));
  fmt::print("  array       {} of {} ({} values, from a {} file)\n", to_string(in.shape().dims),
             name_of(in.shape().dtype), in.count(), in.original() == FileKind::npy ? ".npy" : "raw");
  fmt::print("  size        {} for {}, ratio {:.2f}\n", human_bytes(static_cast<double>(in.file_bytes())),
             human_bytes(raw), raw / static_cast<double>(in.file_bytes()));
  if (s.largest_bound == 0) {
    fmt::print("  bound       lossless\n");
  } else if (std::isinf(s.largest_bound)) {
    fmt::print("  bound       none: a fixed ratio\n");
  } else {
    fmt::print("  bound       {:g} for every value\n", s.largest_bound);
  }
  fmt::print("  frames      {}, {} chunks of up to {} values\n", s.frames.size(), s.chunks, frame::chunk_values);
  for (const auto& [form, chunks] : s.forms) {
    if (chunks == 0) continue;  // an empty array's
    fmt::print("    {:<18}  {:>8} ({:.1f} %)\n", form, chunks,
               100 * static_cast<double>(chunks) / static_cast<double>(s.chunks));
  }
  Table table({"frame", "codec", "values", "bytes", "ratio", "step", "bound", "operands"});
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < std::min(shown, s.frames.size()); ++i) {
    const frame::Header& f = s.frames[i];
    const double ratio = static_cast<double>(f.count * size_of(f.grid.dtype)) / static_cast<double>(f.frame_bytes);
    table.row({fmt::format("{}", i), std::string(codec_name(f)), fmt::format("{}", f.count),
               fmt::format("{}", f.frame_bytes), fmt::format("{:.2f}", ratio),
               f.grid.lossless() ? "lossless" : fmt::format("{:g}", f.grid.step), fmt::format("{:g}", f.grid.bound),
               fmt::format("{}", f.operands)});
  }
  fmt::print("\n{}", table.text());
  if (s.frames.size() > shown) fmt::print("({} more; --json lists all)\n", s.frames.size() - shown);
}

int run_inspect(const Session& session, const std::string& input) {
  LczReader in(input);
  const Summary summary = read_all(in, session.progress());
  if (session.json) {
    print_json(to_json(in, summary));
  } else if (!session.quiet) {
    print_text(in, summary);
  }
  return 0;
}

}  // namespace

void add_inspect(CommandSyntax app, Session& session) {
  auto input = std::make_shared<std::string>();
  CommandSyntax c = app.add_command("inspect", "Check a .lcz file and say what is in it");
  c.argument("input", *input, "A file made by laconic compress");
  c.on_chosen([&session, input] { session.command = [&session, input] { return run_inspect(session, *input); }; });
}

}  // namespace laconic::app
