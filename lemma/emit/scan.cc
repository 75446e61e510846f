// Scans whose states are single values: the state stays in a variable, of one point or of a group of lanes.

#include "lemma/emit/body.h"
#include "lemma/emit/fold.h"
#include "lemma/emit/general_fold.h"
#include "lemma/emit/statements.h"
#include "lemma/emit/store.h"
#include "lemma/emit/value.h"

namespace lemma::emit {

void emit_scan(Unit& unit, const tile::Scan& scan) {
  if (!scan.comment.empty()) unit.out.line("/* " + scan.comment + " */");
  emit_general_scan(unit, scan);
}

}  // namespace lemma::emit
