#include "pieces.h"

#include <utility>

namespace xpurt {
namespace {
thread_local bool on_pieces = false;
}  // namespace

Pieces::Pieces() : before_(std::exchange(on_pieces, true)) {}
Pieces::~Pieces() {
  on_pieces = before_;
}
bool works_on_pieces() {
  return on_pieces;
}

}  // namespace xpurt
