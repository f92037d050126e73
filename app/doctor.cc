// laconic doctor: what was found on this machine, what is missing and how to get it.
#include <fmt/core.h>

#include "command.h"
#include "doctor/probe.h"
#include "report/json.h"
#include "report/streams.h"

namespace laconic::app {
namespace {

int run_doctor(const Session& session) {
  const std::vector<Finding> findings = examine_machine();
  if (session.json) {
    nlohmann::json j{{"version", LACONIC_VERSION}, {"findings", nlohmann::json::array()}};
    for (const Finding& f : findings)
      j["findings"].push_back(
          {{"topic", f.topic}, {"what", f.what}, {"found", f.found}, {"detail", f.detail}, {"remedy", f.remedy}});
    print_json(j);
    return 0;
  }
  fmt::print("laconic {}\n", LACONIC_VERSION);
  std::string topic;
  for (const Finding& f : findings) {
    if (f.topic != topic) fmt::print("\n{}\n", f.topic);
    topic = f.topic;
    fmt::print("  {} {:<26} {}\n", f.found ? "+" : "-", f.what, printable(f.detail));
    if (!f.remedy.empty()) fmt::print("      to change that: {}\n", printable(f.remedy));
  }
  return 0;
}

}  // namespace

void add_doctor(CommandSyntax app, Session& session) {
  CommandSyntax c = app.add_command("doctor", "Say what was found on this machine, what is missing and how to get it");
  c.on_chosen([&session] { session.command = [&session] { return run_doctor(session); }; });
}

}  // namespace laconic::app
