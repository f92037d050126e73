#include "command_line.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "exit_code.h"

namespace laconic::app {

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
  app_->add_option(names, to, help)->capture_default_str();
}

void CommandSyntax::option(const std::string& names, int& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str();
}

void CommandSyntax::option(const std::string& names, double& to, const std::string& help) {
  app_->add_option(names, to, help);
}

void CommandSyntax::existing_file(const std::string& names, std::string& to, const std::string& help) {
  app_->add_option(names, to, help)->check(CLI::ExistingFile);
}

void CommandSyntax::choice(const std::string& names, std::string& to, const std::vector<std::string>& words,
                           const std::string& help) {
  app_->add_option(names, to, help)->check(CLI::IsMember(words));
}

void CommandSyntax::list(const std::string& names, std::vector<std::string>& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->delimiter(',');
}

void CommandSyntax::list(const std::string& names, std::vector<int>& to, const std::string& help) {
  app_->add_option(names, to, help)->capture_default_str()->delimiter(',');
}

void CommandSyntax::flag(const std::string& names, bool& to, const std::string& help) {
  app_->add_flag(names, to, help);
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  if (!version.empty()) app_->set_version_flag("--version", version);
  app_->footer(footer);
}

CommandLine::~CommandLine() = default;

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app_->exit(e) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  return std::nullopt;
}

}  // namespace laconic::app
