#include "lemma/emit/microkernel.h"

namespace lemma::emit {

bool emit_register_tiles(Unit&, const tile::Gemm&, std::string& reason) {
  reason = "no register tile yet";
  return false;
}

}  // namespace lemma::emit
