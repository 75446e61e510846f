#include "lemma/base/diagnostic.h"

namespace lemma::base {
namespace {

std::string place(const Span& span) {
  if (span.line == 0) return span.file.empty() ? "" : span.file + ": ";
  return (span.file.empty() ? "<text>" : span.file) + ":" + std::to_string(span.line) + ":" +
         std::to_string(span.column) + ": ";
}

const char* title(Failure failure) {
  switch (failure) {
    case Failure::Invalid: return "error: ";
    case Failure::Unsupported: return "unsupported: ";
    case Failure::System: return "system error: ";
  }
  return "";
}

}  // namespace

Diagnostic invalid(std::string message, Span span, std::string suggestion) {
  return {Failure::Invalid, std::move(span), std::move(message), std::move(suggestion), {}, {}};
}
Diagnostic unsupported(std::string message, Span span, std::string suggestion) {
  return {Failure::Unsupported, std::move(span), std::move(message), std::move(suggestion), {}, {}};
}
Diagnostic system_failure(std::string message, std::string suggestion) {
  return {Failure::System, {}, std::move(message), std::move(suggestion), {}, {}};
}

std::string render(const Diagnostic& diagnostic) {
  std::string out = place(diagnostic.span) + title(diagnostic.failure) + diagnostic.message + "\n";
  if (!diagnostic.excerpt.empty()) {
    out += "  " + diagnostic.excerpt + "\n";
    // Tabs in the excerpt are kept in the margin so that the caret stands under its character.
    std::string margin = "  ";
    for (int i = 0; i + 1 < diagnostic.span.column; ++i) {
      margin += size_t(i) < diagnostic.excerpt.size() && diagnostic.excerpt[size_t(i)] == '\t' ? '\t' : ' ';
    }
    out += margin + std::string(size_t(std::max(1, diagnostic.span.length)), '^') + "\n";
  }
  if (!diagnostic.suggestion.empty()) out += "  help: " + diagnostic.suggestion + "\n";
  for (const Note& note : diagnostic.notes) out += place(note.span) + "note: " + note.message + "\n";
  return out;
}

}  // namespace lemma::base
