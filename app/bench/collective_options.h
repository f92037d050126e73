// The options of `laconic bench allreduce`, `... bcast` and so on: what is measured, and on which data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "bench/dataset.h"
#include "collective/metadata.h"
#include "collective/options.h"

namespace laconic::app {

/// One of the things that take turns.
struct Mode {
  std::string name;    ///< as in --modes: plain, cprp2p, ccoll, zccl, zccl-mt, laconic, auto
  bool plain = false;  ///< the MPI library's own collective; the rest does not matter then
  CodecId codec = CodecId::slice;
  Framework framework = Framework::automatic;
  int threads = 1;
  Schedule schedule = Schedule::automatic;
  laconic::Mode way = laconic::Mode::compressed;
  bool again = false;  ///< a second series of the same, warm by the calls of the first
};

struct CollectiveOptions {
  Collective collective = Collective::allreduce;
  std::string file;
  HintOptions hint;
  std::string field = "wave_computed_marmousi_rtm_shots";
  std::string data;
  std::vector<std::string> sizes{"64MiB"};
  std::string bound = "1e-3rel";
  std::string op = "sum";  ///< of a reduction
  int root = 0;
  std::vector<std::string> codecs{"fzlight"};
  std::vector<std::string> modes{"plain", "cprp2p", "ccoll", "zccl", "laconic"};
  std::vector<std::string> schedules{"automatic"};
  int threads = 1;
  int repetitions = 5;
  int warm_up = 1;        ///< calls before any is timed
  int turn = 1;           ///< calls of a mode whose turn it is; of several the first is not timed
  std::string interface;  ///< counts the bytes on the wire; empty: not counted
  int ranks = 0;          ///< that the command is to start; 0: a launcher has
  std::string mpi;        ///< by the launcher of this one; empty: of any
  std::string link;       ///< rate of the links between hosts, such as 1gbit; empty: not known

  /// launched: by an MPI launcher, which has said how many ranks there are.
  void add_to(CommandSyntax command, bool launched);
  [[nodiscard]] bool reduces() const;
  [[nodiscard]] bool has_root() const;
};

/// Throws Failure(usage) for a --link that is not a number and gbit or mbit.
void require_link_rate(const std::string& link);

/// Adds a command for each collective to `bench`; `chosen` is called with the options of the one on the command line.
void add_collective_benches(CommandSyntax bench, bool launched,
                            const std::function<void(const CollectiveOptions&)>& chosen);

/// What takes turns, in the order of --modes; cprp2p once for each codec, laconic for each schedule. Of the codecs,
/// `all` are those that have a use for the bound and the field's elements. Throws Failure(usage).
std::vector<Mode> chosen_modes(const CollectiveOptions& options, const Bound& bound, const LoadedField& field);

/// The data: the file, or the sample field. Throws Failure(bad_data) when it is empty.
LoadedField load_data(const CollectiveOptions& options);

}  // namespace laconic::app
