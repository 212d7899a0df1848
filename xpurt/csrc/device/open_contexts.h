// From a placement that is known to one that can be used: see Note [Opening the
// contexts].
#pragma once

namespace xpurt {

// Makes the contexts of the installed placement, if it has none yet.
void open_placement();

// From now on a forked child cannot use xpu, as after a placement was opened.
void refuse_forks();

}  // namespace xpurt
