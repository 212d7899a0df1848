// The XPURT_VIRTUAL_GPU* variables. xpurt/virtual_gpu/__init__.py checks and sets them.
// A layer that is loaded without it reports values that it cannot read on stderr.

#include "layer.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
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

static double positive_of(const char* name) {
  const char* value = value_of(name);
  if (*value == '\0') return 0;
  char* end = NULL;
  const double number = strtod(value, &end);
  if (*end == '\0' && number > 0 && isfinite(number)) return number;
  fprintf(stderr, "xpurt virtual GPU: %s=%s is no number above 0; ignored\n", name,
          value);
  return 0;
}

// "8+32" as a bit per number.
static uint64_t bits_of(const char* numbers) {
  uint64_t bits = 0;
  for (const char* at = numbers; isdigit((unsigned char)*at);) {
    char* end = NULL;
    const unsigned long number = strtoul(at, &end, 10);
    if (number < 64) bits |= (uint64_t)1 << number;
    at = *end == '+' ? end + 1 : end;
  }
  return bits;
}

static bool is_name(const char* text, size_t length, const char* name) {
  return strlen(name) == length && memcmp(text, name, length) == 0;
}

// "usm=0,work_group=64": limits.c has the meaning of each.
static void read_limits(const char* text, Limits* limits) {
  while (*text != '\0') {
    const size_t length = strcspn(text, ",");
    const char* const equals = memchr(text, '=', length);
    const size_t name = equals == NULL ? length : (size_t)(equals - text);
    const char* const value = equals == NULL ? "" : equals + 1;
    const uint64_t number = strtoull(value, NULL, 10);
    limits->any = true;
    if (is_name(text, name, "usm"))
      limits->no_usm = number == 0;
    else if (is_name(text, name, "compiler"))
      limits->no_compiler = number == 0;
    else if (is_name(text, name, "address_bits"))
      limits->narrow = number == 32;
    else if (is_name(text, name, "vendor_id"))
      limits->vendor_id = (cl_uint)number;
    else if (is_name(text, name, "opencl"))
      limits->opencl = strlen(value) >= 3 ? 10 * (int)number + (value[2] - '0') : 0;
    else if (is_name(text, name, "sub_groups"))
      limits->sub_groups = bits_of(value);
    else if (is_name(text, name, "work_group"))
      limits->work_group = number;
    else if (is_name(text, name, "local_memory"))
      limits->local_memory = number;
    else if (is_name(text, name, "vector_width"))
      limits->vector_width = number;
    else
      fprintf(stderr, "xpurt virtual GPU: the limit %.*s is unknown; ignored\n",
              (int)length, text);
    text += length;
    text += *text == ',';
  }
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
  settings.fp16 = strcmp(value_of("XPURT_VIRTUAL_GPU_FP16"), "0") != 0;
  read_limits(value_of("XPURT_VIRTUAL_GPU_LIMITS"), &settings.limits);
  settings.delay_ns = 1000 * number_of("XPURT_VIRTUAL_GPU_DELAY_US");
  settings.link_gb_per_s = positive_of("XPURT_VIRTUAL_GPU_LINK");
  settings.memory_bytes = number_of("XPURT_VIRTUAL_GPU_MEMORY");
  settings.fail_after = number_of("XPURT_VIRTUAL_GPU_FAIL_AFTER");
}
