// The command line's syntax: commands, their options and where the values go. The one door to CLI11, whose headers take
// a compiler longer than all that a command does.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace laconic::app {

/// A command or one of its subcommands; a handle, good for as long as its CommandLine. Names are as in "-b,--bound";
/// one without a dash is a word by its place. What is in a variable when it is named here is its default, which --help
/// shows unless it is empty. Variables must outlive the parsing.
class CommandSyntax {
 public:
  explicit CommandSyntax(CLI::App& app) : app_(&app) {}

  /// A subcommand, of which one is then required. It takes its parents' options too.
  CommandSyntax add_command(const std::string& name, const std::string& help);
  /// Called once parsing has reached the end of a command line that has this command.
  void on_chosen(std::function<void()> f);

  /// A word that must be there; words that may be there; all the rest of the line, options too, at least one word.
  void argument(const std::string& name, std::string& to, const std::string& help);
  void arguments(const std::string& name, std::vector<std::string>& to, const std::string& help);
  void rest(const std::string& name, std::vector<std::string>& to, const std::string& help);

  /// A value may not be empty, nor begin with two dashes: it was forgotten then.
  void option(const std::string& names, std::string& to, const std::string& help);
  void option(const std::string& names, int& to, const std::string& help);
  /// The default is not shown.
  void option(const std::string& names, double& to, const std::string& help);
  void choice(const std::string& names, std::string& to, const std::vector<std::string>& words,
              const std::string& help);
  /// Values that stand apart or with commas between.
  void list(const std::string& names, std::vector<std::string>& to, const std::string& help);
  void list(const std::string& names, std::vector<int>& to, const std::string& help);
  void flag(const std::string& names, bool& to, const std::string& help);
  /// One that another command has: --help leaves it out, and giving it is refused with the reason.
  void refused(const std::string& names, const std::string& why);

  /// One that nothing would use without the other, or beside it, is refused then. Both must have been named before.
  void needs(const std::string& name, const std::string& other);
  void excludes(const std::string& name, const std::string& other);

 private:
  CLI::App* app_;
};

/// Whether --json is among the words. Options come into their variables only after all were understood.
bool asks_for_json(int argc, char** argv);

/// A whole command line, of which one command is required.
class CommandLine {
 public:
  /// `version` is what --version prints, if not empty; `footer` ends each --help.
  CommandLine(const std::string& name, const std::string& description, const std::string& version,
              const std::string& footer);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  [[nodiscard]] CommandSyntax syntax() const { return CommandSyntax(*app_); }

  /// Nothing if a command was chosen; otherwise the exit code, after a help or a message was printed: 0, Exit::usage,
  /// or Exit::no_output. A line with --json has the message as JSON too, unless another rank may say that; `wrong`, if
  /// there is one, then gets it.
  std::optional<int> parse(int argc, char** argv, bool says_json = true, std::string* wrong = nullptr);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace laconic::app
