// Makes a resolved placement usable: see Note [Opening the contexts].
#pragma once

namespace xpurt {

// Makes the contexts of the resolved placement, if it is not open yet.
void open_placement();

// From now on a forked child cannot use xpu, as after a placement was opened.
void refuse_forks();

}  // namespace xpurt
