#ifndef SEARCHAPP_KEYS_H
#define SEARCHAPP_KEYS_H

#include <stdint.h>

/* Score and document as one number, the best first: the bits of a float that is not negative order as the float does.
   Those of a negative one make a key that nobody keeps, see `gather`; signed numbers would overflow. */
static uint64_t key_of(int32_t bits, int32_t rank)
{
    return (uint64_t)((uint32_t)INT32_MAX - (uint32_t)bits) << 32 | (uint32_t)rank;
}

static int32_t bits_of(uint64_t key)
{
    return INT32_MAX - (int32_t)(key >> 32);
}

#endif
