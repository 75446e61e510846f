// What goes wrong outside Lemma's own code, as values: the user's program is invalid, or it asks for something that is
// unsupported. Messages are one lower-case sentence without a full stop: what was found, what was expected.
#pragma once

#include <string>
#include <vector>

namespace lemma::base {

// A range of a source text. Lines and columns count from 1 (columns in bytes); line 0 means "no place".
struct Span {
  std::string file;
  int line = 0;
  int column = 0;
  int length = 0;
  bool operator==(const Span&) const = default;
};

struct Note {
  Span span;
  std::string message;
  bool operator==(const Note&) const = default;
};

enum class Failure {
  Invalid,      // the user's program or data is wrong
  Unsupported,  // right, but Lemma (or this target) cannot do it; the message names the limit and a way out
  System,       // a file, a compiler, memory or the machine failed
};

struct Diagnostic {
  Failure failure = Failure::Invalid;
  Span span;
  std::string message;     // what was found and what was expected
  std::string suggestion;  // what would mend it; may be empty
  std::string excerpt;     // the offending source line; may be empty
  std::vector<Note> notes;
  bool operator==(const Diagnostic&) const = default;
};

Diagnostic invalid(std::string message, Span span = {}, std::string suggestion = {});
Diagnostic unsupported(std::string message, Span span = {}, std::string suggestion = {});
Diagnostic system_failure(std::string message, std::string suggestion = {});

// file:line:column: error: message, the source line, a caret under the range, then "help:" and notes.
std::string render(const Diagnostic& diagnostic);

}  // namespace lemma::base
