// When to copy operands that then stay on a device.
#pragma once

namespace xpurt {

// Note [Copies that stay]
// ~~~~~~~~~~~~~~~~~~~~~~~
// A divided product reads all of its second operand on each device. The first call has
// to copy it, which may take longer than the call gains; later calls find it there, if
// it is a weight. By the times of one call alone, the product would never be divided:
// in the simulator a product of 2048 on two cards kept an efficiency of 0.67. So the
// copy is an investment (ski rental): it is made once the calls without it have lost as
// much time as it takes. If the operand is written anew for each call, the copy does
// not pay, and the next one has to wait for twice the loss. Then the waiting doubles
// each time, so that the copies made in vain add up to little.
class CopyRegret {
 public:
  // Adds what a call loses without the copies, for `calls` such calls. Returns whether
  // to make the copies now.
  bool add(double gain_us, double copy_us, double calls = 1) {
    regret_us_ += gain_us * calls;
    if (regret_us_ < copy_us * backoff_) return false;
    regret_us_ = 0;
    backoff_ *= 2;
    return true;
  }

  // Records that a call was divided and found its operands in place.
  void pay_off() { backoff_ = 1; }

 private:
  double regret_us_ = 0;
  double backoff_ = 1;
};

}  // namespace xpurt
