// A table of ranges of addresses, sorted. Not thread-safe: its owner has a lock.
//
// An allocation of a layer is a struct whose first member is its AddressRange, so that
// the pointer to one is a pointer to the other.

#ifndef XPURT_OPENCL_LAYER_ADDRESS_RANGES_H_
#define XPURT_OPENCL_LAYER_ADDRESS_RANGES_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct {
  char* address;
  size_t size;
} AddressRange;

typedef struct {
  AddressRange** live;
  size_t count;
  size_t room;
} AddressRanges;

// False if there is no memory for the entry.
bool add_range(AddressRanges* ranges, AddressRange* range);
void remove_range(AddressRanges* ranges, const AddressRange* range);

// The range that starts at `address`; null if there is none.
AddressRange* range_at(const AddressRanges* ranges, const void* address);

// The range that contains `address`. Its end counts, too: an empty tensor may point
// there. Null if there is none.
AddressRange* range_around(const AddressRanges* ranges, const void* address);

#endif  // XPURT_OPENCL_LAYER_ADDRESS_RANGES_H_
