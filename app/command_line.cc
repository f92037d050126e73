#include "command_line.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <string_view>
#include <utility>

#include "exit_code.h"

namespace laconic::app {
namespace {

/// What is wrong with an option's value where it was forgotten: CLI11 takes nothing for a value, and the next option
/// too, even behind "--name=".
std::string forgotten(const std::string& value) {
  if (value.empty()) return "its value is empty";
  const bool short_option =
      value.size() == 2 && value[0] == '-' && std::isalpha(static_cast<unsigned char>(value[1])) != 0;
  return short_option || value.starts_with("--") ? "wants a value before " + value : "";
}

std::string explanation(const CLI::App& app, const CLI::ParseError& e) {
  std::string text = e.what();
  const std::vector<std::string> unknown = app.remaining(true);
  if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && !unknown.empty())
    text = "there is no command or option '" + unknown.front() + "'";
  std::string command = app.get_name();
  for (const CLI::App* chosen = &app; !chosen->get_subcommands().empty(); command += " " + chosen->get_name())
    chosen = chosen->get_subcommands().front();
  return text + "; " + command + " --help says more";
}

}  // namespace

bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

CommandSyntax CommandSyntax::add_command(const std::string& name, const std::string& help) {
  CLI::App* const command = app_->add_subcommand(name, help);
  command->fallthrough();
  app_->require_subcommand(1);
  return CommandSyntax(*command);
}

void CommandSyntax::on_chosen(std::function<void()> f) { app_->callback(std::move(f)); }

void CommandSyntax::argument(const std::string& name, std::string& to, const std::string& help) {
  app_->add_option(name, to, help)->required();
}

void CommandSyntax::arguments(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  app_->add_option(name, to, help);
}

void CommandSyntax::rest(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  app_->add_option(name, to, help)->required();
  app_->positionals_at_end();
}

void CommandSyntax::option(const std::string& names, std::string& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->check(forgotten);
}

void CommandSyntax::option(const std::string& names, int& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->check(forgotten);
}

void CommandSyntax::option(const std::string& names, double& to, const std::string& help) {
  app_->add_option(names, to, help)->check(forgotten);
}

void CommandSyntax::choice(const std::string& names, std::string& to, const std::vector<std::string>& words,
                           const std::string& help) {
  app_->add_option(names, to, help)->check(CLI::IsMember(words));
}

void CommandSyntax::list(const std::string& names, std::vector<std::string>& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->check(forgotten)->delimiter(',');
}

void CommandSyntax::list(const std::string& names, std::vector<int>& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->check(forgotten)->delimiter(',');
}

void CommandSyntax::flag(const std::string& names, bool& to, const std::string& help) {
  app_->add_flag(names, to, help);
}

void CommandSyntax::refused(const std::string& names, const std::string& why) {
  app_->add_option_function<std::string>(names,
                                         [names, why](const std::string&) { throw CLI::ValidationError(names, why); })
      ->group("");
}

void CommandSyntax::needs(const std::string& name, const std::string& other) {
  app_->get_option(name)->needs(app_->get_option(other));
}

void CommandSyntax::excludes(const std::string& name, const std::string& other) {
  app_->get_option(name)->excludes(app_->get_option(other));
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  if (!version.empty()) app_->set_version_flag("--version", version);
  app_->footer(footer);
}

CommandLine::~CommandLine() = default;

std::optional<int> CommandLine::parse(int argc, char** argv, bool says_json, std::string* wrong) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    app_->exit(e);
    return checked_output(false, 0);
  } catch (const CLI::ParseError& e) {
    const std::string text = explanation(*app_, e);
    if (wrong != nullptr) *wrong = text;
    return report_failure(says_json && asks_for_json(argc, argv), Exit::usage, text);
  }
  return std::nullopt;
}

}  // namespace laconic::app
