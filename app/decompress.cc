// laconic decompress: a .lcz file back to .npy or raw values.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "arguments.h"
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

struct DecompressOptions {
  std::string input;
  std::string output;
  int threads = 1;
  bool force = false;
};

/// "x.npy.lcz" gives "x.npy"; anything else gets the extension of the original kind.
std::string default_output(const LczReader& in) {
  const std::filesystem::path p(in.path());
  if (p.extension() == ".lcz" && !p.stem().empty()) return (p.parent_path() / p.stem()).string();
  return in.path() + (in.original() == FileKind::npy ? ".npy" : fmt::format(".{}", name_of(in.shape().dtype)));
}

/// Whether a name has an extension. What begins with a digit is none: "run1.5" is a name with a number.
bool has_extension(const std::string& name) {
  const std::string extension = std::filesystem::path(name).extension().string();
  return extension.size() > 1 && std::isdigit(static_cast<unsigned char>(extension[1])) == 0;
}

int run_decompress(const Session& session, DecompressOptions& options) {
  checked_threads(options.threads);
  require_output(options.input, options.output);
  LczReader in(options.input);
  if (options.output.empty()) options.output = default_output(in);
  OutputFile out(options.output, options.force);
  const FileKind kind = has_extension(options.output) ? kind_from_name(options.output) : in.original();
  out.write(header_for(kind, in.shape()));
  Progress progress("decompressing", in.count(), session.progress());
  std::vector<std::uint8_t> frame;
  frame::Header header;
  double bound = 0;
  while (in.next(frame, header)) {
    in.decode(frame, header, options.threads, [&](std::span<const std::uint8_t> values) { out.write(values); });
    bound = std::max(bound, header.grid.bound);
    progress.advance(header.count);
  }
  out.commit();
  if (session.json) {
    print_json({{"input", options.input},
                {"output", options.output},
                {"dtype", name_of(in.shape().dtype)},
                {"dims", in.shape().dims},
                {"absolute_bound", finite_or_null(bound)},
                {"file_bytes", in.file_bytes()},
                {"output_bytes", out.written()}});
  } else if (!session.quiet) {
    report(fmt::format("{}: {} of {} -> {} ({}), {}\n", printable(options.input), to_string(in.shape().dims),
                       name_of(in.shape().dtype), printable(options.output),
                       human_bytes(static_cast<double>(out.written())),
                       bound == 0          ? "exact"
                       : std::isinf(bound) ? "no bound was promised"
                                           : fmt::format("every value within {:g}", bound)));
  }
  return 0;
}

}  // namespace

void add_decompress(CommandSyntax app, Session& session) {
  auto options = std::make_shared<DecompressOptions>();
  CommandSyntax c = app.add_command("decompress", "Turn a .lcz file back into an array file");
  c.argument("input", options->input, "A file made by laconic compress");
  c.option("-o,--output", options->output,
           "Where to write; a name ending in .npy gives .npy, with another extension raw values, with none what it was "
           "(default: INPUT without .lcz)");
  c.option("-t,--threads", options->threads, "Threads");
  c.flag("-f,--force", options->force, "Replace an existing output");
  c.on_chosen(
      [&session, options] { session.command = [&session, options] { return run_decompress(session, *options); }; });
}

}  // namespace laconic::app
