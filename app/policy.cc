// laconic policy: checks the rules for the drop-in library, and says what becomes of a call.
#include <fmt/core.h>

#include <memory>

#include "command.h"
#include "report/json.h"
#include "report/streams.h"
#include "run/policy_file.h"

namespace laconic::app {
namespace {

int check(const std::string& path, const Session& session) {
  const preload::Policy policy = read_policy(path);
  if (session.json) {
    print_json({{"policy", path}, {"rules", policy.rules.size()}});
  } else if (!session.quiet) {
    fmt::print("{}: {} rule{}, no mistakes\n", printable(path), policy.rules.size(),
               policy.rules.size() == 1 ? "" : "s");
  }
  return 0;
}

}  // namespace

void add_policy(CommandSyntax app, Session& session) {
  CommandSyntax c = app.add_command("policy", "Rules for laconic run");
  CommandSyntax checker = c.add_command("check", "Say whether a policy has mistakes, and in which line");
  auto path = std::make_shared<std::string>();
  checker.argument("file", *path, "TOML file");
  checker.on_chosen([path, &session] { session.command = [path, &session] { return check(*path, session); }; });
}

}  // namespace laconic::app
