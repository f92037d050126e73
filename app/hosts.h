// Emulated hosts for ranks: network namespaces on this machine, joined by links of a given rate (tools/cluster, which
// is beside the command in libexec/laconic, of a build and of an installation).
#pragma once

#include <string>
#include <vector>

namespace laconic::app {

/// The beginning of a command line that starts a rank on each of so many hosts by an MPI's launcher, and leaves nothing
/// behind, however that ends; the program and its arguments are to follow. Changes this process's environment for it.
/// Throws Failure, having tried one host, where there cannot be any.
std::vector<std::string> ranks_on_hosts(const std::string& flavour, const std::string& launcher, int ranks,
                                        const std::string& link);

}  // namespace laconic::app
