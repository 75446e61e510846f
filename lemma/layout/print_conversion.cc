#include "lemma/layout/convert.h"
#include "lemma/layout/text.h"

namespace lemma::layout {
namespace {

// " ^ lane(4,0)", or nothing if no bit matters.
std::string print_columns(const char* of, const std::vector<uint64_t>& columns) {
  std::string out;
  bool any = false;
  for (uint64_t column : columns) {
    out += (out.empty() ? "" : ",") + std::to_string(column);
    any = any || column != 0;
  }
  return any ? std::string(" ^ ") + of + "(" + out + ")" : "";
}

std::string print_chosen(const Chosen& chosen) {
  return std::to_string(chosen.base) + print_columns("lane", chosen.by_lane) + print_columns("warp", chosen.by_warp);
}

std::string print_exchange(const Exchange& e) {
  std::string out = "  register " + print_chosen(e.receive) + " <- register " + print_chosen(e.send);
  const std::optional<uint64_t> mask = xor_mask(e);
  if (!mask) return out + " of lane " + print_chosen(e.lane) + "\n";
  return *mask == 0 ? out + "\n" : out + " of lane ^ " + std::to_string(*mask) + "\n";
}

}  // namespace

std::string print(const Conversion& conversion) {
  switch (conversion.kind) {
    case ConversionKind::Same: return "same\n";
    case ConversionKind::Shared:
      return "shared: write " + std::to_string(conversion.write_width) + " and read " +
             std::to_string(conversion.read_width) + " elements at a time, " + std::to_string(conversion.wavefronts) +
             " wavefronts of " + std::to_string(conversion.least) + "\n  " + print(conversion.memory) + "\n";
    case ConversionKind::Registers:
    case ConversionKind::Shuffles: break;
  }
  std::string out = conversion.kind == ConversionKind::Registers ? "registers: " : "shuffles: ";
  out += std::to_string(conversion.packed) + (conversion.packed == 1 ? " register" : " registers") + " at a time\n";
  for (const Exchange& e : conversion.moves) out += print_exchange(e);
  for (const Exchange& e : conversion.shuffles) out += print_exchange(e);
  return out;
}

}  // namespace lemma::layout
