// The layer's name, and which files hook which entry points.

#include "layer.h"

const char layer_name[] = "xpurt virtual GPU";

void hook_all(cl_icd_dispatch* table) {
  read_settings();
  if (!settings.on) return;
  hook_platforms(table);
  hook_devices(table);
  hook_contexts(table);
  hook_programs(table);
  hook_buffers(table);
  hook_svm(table);
  hook_delay(table);
  hook_failure(table);
  hook_limits(table);
  if (settings.svm) hook_coarse_kernels(table);
  hook_exit(table);
}
