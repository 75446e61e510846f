#include "cli/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"

namespace lemma::cli {
namespace {

using nlohmann::json;

const char* kind(base::Failure failure) {
  switch (failure) {
    case base::Failure::Invalid: return "invalid";
    case base::Failure::Unsupported: return "unsupported";
    case base::Failure::System: return "system";
  }
  return "";
}

int exit_code(base::Failure failure) {
  switch (failure) {
    case base::Failure::Invalid: return kInvalid;
    case base::Failure::Unsupported: return kUnsupported;
    case base::Failure::System: return kSystem;
  }
  return kSystem;
}

json place(const base::Span& span) {
  if (span.line == 0 && span.file.empty()) return nullptr;
  return {{"file", span.file}, {"line", span.line}, {"column", span.column}, {"length", span.length}};
}

std::string format(const char* pattern, int digits, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, digits, value);
  return text;
}

}  // namespace

json to_json(const base::Diagnostic& diagnostic) {
  json notes = json::array();
  for (const base::Note& note : diagnostic.notes) notes.push_back({{"message", note.message}, {"place", place(note.span)}});
  return {{"kind", kind(diagnostic.failure)},
          {"message", diagnostic.message},
          {"place", place(diagnostic.span)},
          {"excerpt", diagnostic.excerpt},
          {"suggestion", diagnostic.suggestion},
          {"notes", notes}};
}

json to_json(const runtime::Array& array) {
  const Digest d = digest(array);
  json out = {{"type", std::string(scalar::name(array.type))}, {"extents", array.extents}};
  out["sum"] = std::isfinite(d.sum) ? json(d.sum) : json(nullptr);
  out["sum_of_absolute_values"] = std::isfinite(d.absolute) ? json(d.absolute) : json(nullptr);
  out["nan"] = d.nan;
  out["infinite"] = d.infinite;
  return out;
}

void print_json(const json& document) {
  const std::string text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int fail(const Context& context, const base::Diagnostic& diagnostic) {
  if (context.json) {
    print_json({{"error", to_json(diagnostic)}});
  } else {
    std::fputs(base::render(diagnostic).c_str(), stderr);
  }
  return interrupted() ? int(kInterrupted) : exit_code(diagnostic.failure);
}

void notice(const Context& context, const std::string& sentence) {
  if (!context.quiet) std::fprintf(stderr, "lemma: %s\n", sentence.c_str());
}

std::string number(double value, int digits) { return format("%.*g", digits, value); }

std::string seconds(double value) {
  if (!(value >= 0)) return "-";
  if (value < 1e-6) return number(value * 1e9, 3) + " ns";
  if (value < 1e-3) return number(value * 1e6, 4) + " us";
  if (value < 1) return number(value * 1e3, 4) + " ms";
  return number(value, 4) + " s";
}

std::string bytes(double value) {
  if (value < 1e3) return number(value, 4) + " B";
  if (value < 1e6) return number(value / 1e3, 4) + " kB";
  if (value < 1e9) return number(value / 1e6, 4) + " MB";
  return number(value / 1e9, 4) + " GB";
}

Digest digest(const runtime::Array& array) {
  Digest out;
  for (int64_t i = 0; i < array.count(); ++i) {
    const double value = runtime::float_at(array, i);
    if (std::isnan(value)) {
      ++out.nan;
    } else if (std::isinf(value)) {
      ++out.infinite;
    } else {
      out.sum += value;
      out.absolute += std::fabs(value);
    }
  }
  return out;
}

std::string describe(const Digest& digest) {
  std::string out = "sum " + number(digest.sum, 9) + ", sum of absolute values " + number(digest.absolute, 9);
  if (digest.nan > 0) out += ", " + std::to_string(digest.nan) + " nan";
  if (digest.infinite > 0) out += ", " + std::to_string(digest.infinite) + " infinite";
  return out;
}

}  // namespace lemma::cli
