  C most = -INFINITY;
  LINE(most = maximum_of(most, $load0);)
  ACROSS(most, maximum_of(most, other))
  C sum = 0;
  LINE(sum += exp($load0 - most);)
  ACROSS(sum, sum + other)
  LINE(const C a0 = $load0; $store;)
