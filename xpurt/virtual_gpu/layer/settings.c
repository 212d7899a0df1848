// The XPURT_VIRTUAL_GPU* variables. xpurt/virtual_gpu/__init__.py checks and sets them.
// A layer that is loaded without it reports values that it cannot read on stderr.

#include "layer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Settings settings;

static const char* value_of(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

static uint64_t number_of(const char* name) {
  const char* value = value_of(name);
  if (*value == '\0') return 0;
  char* end = NULL;
  errno = 0;
  const unsigned long long number = strtoull(value, &end, 10);
  if (errno == 0 && *end == '\0' && isdigit((unsigned char)*value)) return number;
  fprintf(stderr, "xpurt virtual GPU: %s=%s is no whole number; ignored\n", name,
          value);
  return 0;
}

void read_settings(void) {
  const char* mode = value_of("XPURT_VIRTUAL_GPU");
  settings.svm = strcmp(mode, "svm") == 0;
  settings.strict = settings.svm || strcmp(mode, "strict") == 0;
  settings.coherent = strcmp(mode, "coherent") == 0;
  settings.on = settings.strict || settings.coherent || strcmp(mode, "lenient") == 0 ||
                strcmp(mode, "1") == 0;
  if (!settings.on && *mode != '\0' && strcmp(mode, "0") != 0 &&
      strcmp(mode, "off") != 0)
    fprintf(stderr,
            "xpurt virtual GPU: XPURT_VIRTUAL_GPU=%s is unknown, so there is none; "
            "use strict, lenient, 1 (lenient), coherent, svm, 0 or off\n",
            mode);
  settings.fp64 = strcmp(value_of("XPURT_VIRTUAL_GPU_FP64"), "0") != 0;
  settings.delay_ns = 1000 * number_of("XPURT_VIRTUAL_GPU_DELAY_US");
  settings.memory_bytes = number_of("XPURT_VIRTUAL_GPU_MEMORY");
  settings.fail_after = number_of("XPURT_VIRTUAL_GPU_FAIL_AFTER");
}
