#ifndef SEARCHAPP_KEYS_H
#define SEARCHAPP_KEYS_H

#include <stdint.h>

/* Return a score and the rank of a document as one key; the best document has the smallest key. The bits of nonnegative
   floats have the same order as the floats. `gather` drops the keys of negative scores. The subtraction is unsigned because
   it would overflow for the bits of negative scores. */
static uint64_t key_of(int32_t bits, int32_t rank)
{
    return (uint64_t)((uint32_t)INT32_MAX - (uint32_t)bits) << 32 | (uint32_t)rank;
}

static int32_t bits_of(uint64_t key)
{
    return INT32_MAX - (int32_t)(key >> 32);
}

#endif
