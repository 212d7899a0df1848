#include "layer.h"
void hook_delay(cl_icd_dispatch* table){(void)table;}
