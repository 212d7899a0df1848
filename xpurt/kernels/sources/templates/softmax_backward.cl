  C sum = 0;
  LINE(const C a0 = $load0; const C a1 = $load1; sum += $summand;)
  ACROSS(sum, sum + other)
  LINE(const C a0 = $load0; const C a1 = $load1; $store;)
