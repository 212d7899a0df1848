// Which of two forms of the same calls is faster, by times of both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "host/api.h"

namespace xpurt {

// Note [Two forms]
// ~~~~~~~~~~~~~~~~
// Some calls can run in two forms: a graph as native code or as kernels, a model as
// written or optimized, a traced graph op by op or compiled, an op of CPU tensors by
// PyTorch's kernel or by a row. Which form is faster depends on the machine and on the
// sizes. So calls of about the same size are a class, and some of them are timed. A
// call runs in one form only.
//
// A round is four calls: two of the form in use, and two of the other one. The second
// call of each is timed; the first one builds kernels, fills caches, and moves data to
// where the form wants them. So both forms are timed under the same load of the
// machine. Noise makes a time longer, never shorter, so the least time of a form
// counts.
//
// The first rounds begin once the time that was lost without the second form, as
// expected, equals the price of trying it. This is the rule of ski rental (Karlin,
// Manasse, Rudolph and Sleator, 1988): a program takes at most about twice the time of
// the best choice made in advance, and a short program builds nothing that does not pay
// within it.
//
// The number of the first rounds depends on what was measured, as in sequential
// analysis (Wald, 1945). The least time of a form is confirmed by a second one that is
// about the same. The first rounds end once the least times of both forms are confirmed
// and are no near tie, or at their greatest number.
//
// The other form replaces the one in use if it takes less than 0.95 of its time. So
// equal forms do not alternate, and the form that was there first stays.
//
// Some callers free the form that is not chosen, or want no measurement later: for them
// the first rounds decide for good. For the others a round is due again whenever it
// costs less than one percent of the time since the last one, so a form that became
// faster is noticed.
//
// Rejected: times of one form now and older ones of the other, as the learner of eager
// ops has them. On a machine whose load changed it chose kernels of 3.6 ms in place of
// native code of 1.3 ms for the rest of the program, since native code had been timed
// while other programs ran. Rejected, too: always three first rounds. With four other
// programs on two processors native code of 93 ms was kept in place of kernels of 82
// ms.

// How one call runs.
struct FormTurn {
  bool second = false;
  bool timed = false;  // from idle to idle; the time is wanted by record()
};

// Chooses for the calls of one class. The first form is in use at the start. It has no
// clock, and is not thread-safe.
class XPURT_API TwoForms {
 public:
  static constexpr int kTurns = 4;  // of a round
  static constexpr int kMostRounds = 12;

  // price_us: what trying the second form costs on top, such as building it; 0: the
  // first call is in a round. lost_us: the time that a call is expected to lose without
  // it. 0: a whole call of the first form; the second call is timed to know it. `ends`:
  // the first rounds decide for good.
  TwoForms(double price_us, double lost_us, bool ends)
      : price_us_(price_us), lost_us_(lost_us), ends_(ends) {}

  FormTurn next();
  void record(bool second, double us);
  // The second form cannot run these calls: the first one does, for good.
  void refuse();

  // Whether the second form is in use; and the same once that is decided for good.
  bool in_use() const { return in_use_; }
  std::optional<bool> decided() const;
  // The least time of the newest rounds. 0: not measured.
  double least_us(bool second) const;
  // See the constructor. 0: not known yet.
  double lost_us() const { return lost_us_; }

 private:
  enum class Stage : uint8_t { before, first_rounds, between, later_round, decided };
  using Times = std::vector<double>;

  bool is_in_round() const {
    return stage_ == Stage::first_rounds || stage_ == Stage::later_round;
  }
  bool is_due() const;
  bool is_clear() const;
  void end_rounds();
  Times& times(bool second) { return times_[second ? 1 : 0]; }

  double price_us_, lost_us_;
  bool ends_;
  bool in_use_ = false;
  Stage stage_ = Stage::before;
  double calls_ = 0;  // since the last round, or since the start
  double wait_ = 0;   // calls between two rounds
  int turn_ = 0;      // of the rounds underway
  std::array<Times, 2> times_;
};

}  // namespace xpurt
