// The files that NEO looks for before it opens a device.
#include "noop_gpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char DEVICES[] = "/dev/dri", ATTRIBUTES[] = "/sys/bus/pci/devices";

static bool starts(const char* text, const char* with) {
  return strncmp(text, with, strlen(with)) == 0;
}

// The file that hides `path`, or `path`.
static const char* hiding(const char* path, char* room) {
  const char* const root = getenv("NOOP_GPU_ROOT");
  if (root == NULL || path == NULL ||
      (!starts(path, DEVICES) && !starts(path, ATTRIBUTES)))
    return path;
  snprintf(room, PATH_MAX, "%s%s", root, path);
  return NEXT(access)(room, F_OK) == 0 ? room : path;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = creates ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  char room[PATH_MAX];
  const char* const found = hiding(path, room);
  if (found == path || !starts(path, DEVICES)) return NEXT(open)(found, flags, mode);
  pthread_mutex_lock(&mutex);
  const int fd = fcntl(memory(), F_DUPFD_CLOEXEC, 0);
  pthread_mutex_unlock(&mutex);
  return fd;
}

FILE* fopen(const char* path, const char* mode) {
  char room[PATH_MAX];
  return NEXT(fopen)(hiding(path, room), mode);
}

DIR* opendir(const char* path) {
  char room[PATH_MAX];
  return NEXT(opendir)(hiding(path, room));
}

int access(const char* path, int mode) {
  char room[PATH_MAX];
  return NEXT(access)(hiding(path, room), mode);
}

int stat(const char* restrict path, struct stat* restrict out) {
  char room[PATH_MAX];
  return NEXT(stat)(hiding(path, room), out);
}
