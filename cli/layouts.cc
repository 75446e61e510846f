#include "cli/layouts.h"

#include "lemma/layout/draw.h"
#include "lemma/layout/text.h"
#include "lemma/scalar/type.h"
#include "lemma/tile/passes/arrange_shared.h"

namespace lemma::cli {
namespace {

std::string describe(const tile::Program& program, int b) {
  const tile::Buffer& buffer = program.buffers[size_t(b)];
  std::string out = std::string(buffer.space == tile::Space::Fragment ? "fragment " : "shared ") + buffer.name + " " +
                    std::string(scalar::name(buffer.type)) + ": " + layout::print(*buffer.hints.placed) + "\n";
  for (const tile::SharedAccess& a : tile::shared_accesses(program, b)) {
    const auto counted = layout::count_wavefronts(*buffer.hints.placed, a.access, scalar::bits(buffer.type));
    if (!counted) continue;
    out += "  " + a.what + ": " + std::to_string(counted->taken) + " wavefronts, at least " + std::to_string(counted->least) +
           (counted->taken == counted->least ? ", no bank conflicts" : "") + "\n";
  }
  return out;
}

}  // namespace

std::string list_layouts(const tile::Program& program) {
  std::string out;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].hints.placed) out += describe(program, int(b));
  }
  return out.empty() ? "no buffer is placed: nothing is in registers or swizzled\n" : out;
}

base::Result<std::string> draw_layout(const tile::Program& program, const std::string& name, bool svg) {
  std::string all;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const tile::Buffer& buffer = program.buffers[b];
    if (!buffer.hints.placed) continue;
    all += (all.empty() ? "" : ", ") + buffer.name;
    if (buffer.name != name) continue;
    layout::DrawOptions options;
    options.element_bits = scalar::bits(buffer.type);
    if (svg) return layout::draw_svg(*buffer.hints.placed, options);
    LEMMA_TRY(const std::string drawn, layout::draw_text(*buffer.hints.placed, options));
    return describe(program, int(b)) + drawn;
  }
  return base::invalid("there is no placed buffer '" + name + "'", {}, all.empty() ? "none is placed" : "placed are " + all);
}

}  // namespace lemma::cli
