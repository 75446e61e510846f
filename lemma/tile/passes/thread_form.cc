#include "lemma/tile/passes/thread_form.h"

#include "lemma/tile/passes/arrange_shared.h"
#include "lemma/tile/passes/pipeline.h"
#include "lemma/tile/passes/place_barriers.h"

namespace lemma::tile {

Program thread_form(Program program, const ThreadTarget& target, std::vector<std::string>& notes) {
  program = distribute(std::move(program), target.options, notes);
  program = arrange_shared(std::move(program));
  program = pipeline(std::move(program), target.shared_bytes, notes);
  return place_barriers(std::move(program));
}

}  // namespace lemma::tile
