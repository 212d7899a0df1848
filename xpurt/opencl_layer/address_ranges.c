#include "address_ranges.h"

#include <stdlib.h>
#include <string.h>

// The number of ranges that start at or below `address`.
static size_t count_up_to(const AddressRanges* ranges, const char* address) {
  size_t low = 0, high = ranges->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ranges->live[middle]->address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool add_range(AddressRanges* ranges, AddressRange* range) {
  if (ranges->count == ranges->room) {
    const size_t room = ranges->room == 0 ? 64 : 2 * ranges->room;
    AddressRange** const grown = realloc(ranges->live, room * sizeof *grown);
    if (grown == NULL) return false;
    ranges->live = grown;
    ranges->room = room;
  }
  AddressRange** const place = ranges->live + count_up_to(ranges, range->address);
  const size_t after = (size_t)(ranges->live + ranges->count - place);
  memmove(place + 1, place, after * sizeof *place);
  *place = range;
  ranges->count++;
  return true;
}

void remove_range(AddressRanges* ranges, const AddressRange* range) {
  const size_t index = count_up_to(ranges, range->address) - 1;
  ranges->count--;
  memmove(ranges->live + index, ranges->live + index + 1,
          (ranges->count - index) * sizeof *ranges->live);
}

AddressRange* range_at(const AddressRanges* ranges, const void* address) {
  AddressRange* const around = range_around(ranges, address);
  return around != NULL && around->address == address ? around : NULL;
}

AddressRange* range_around(const AddressRanges* ranges, const void* address) {
  const size_t count = count_up_to(ranges, address);
  if (count == 0) return NULL;
  AddressRange* const last = ranges->live[count - 1];
  return (const char*)address <= last->address + last->size ? last : NULL;
}
