#ifndef SEARCHAPP_PACKED_H
#define SEARCHAPP_PACKED_H

#include <stdint.h>
#include <string.h>

enum {
    PACKED = 128, /* numbers of a block */
    UNIT = PACKED / 8, /* bytes of a block with one bit per number */
    WIDEST = 32, /* bits of a number */
    PADDING = 8, /* bytes after the last block, because eight bytes are read at once */
};

/* Numbers in an array, or packed in blocks: index/packed.py. */
typedef struct {
    const uint32_t *plain; /* NULL if they are packed */
    const uint8_t *content; /* the blocks; within one, each number has as many bits as the greatest one needs */
    const uint32_t *offsets; /* per block: its start in `content` in UNITs; then the end of the last one */
    int64_t size; /* bytes of `content`, with the padding */
    int64_t first; /* the index of the first number in the blocks */
} Numbers;

/* Return the bits of each number of a block; -1 if the block is not in `content`. */
static int width_of(const Numbers *numbers, int64_t block)
{
    uint64_t end = numbers->offsets[block + 1];
    uint32_t width = numbers->offsets[block + 1] - numbers->offsets[block];
    return width > WIDEST || (int64_t)(end * UNIT) + PADDING > numbers->size ? -1 : (int)width;
}

static uint32_t number_in(const Numbers *numbers, int64_t block, int width, int64_t place)
{
    uint64_t bit = (uint64_t)numbers->offsets[block] * PACKED + (uint64_t)(place * width), bits;
    memcpy(&bits, numbers->content + (bit >> 3), sizeof bits);
    return (uint32_t)(bits >> (bit & 7) & (((uint64_t)1 << width) - 1));
}

/* Write the numbers of a whole block of the given width, or their running sums that begin with `before`: packing.c. */
void searchapp_read_block(const Numbers *numbers, int64_t block, int width, uint32_t *to);
void searchapp_read_sums(const Numbers *numbers, int64_t block, int width, uint32_t before, uint32_t *to);

/* Return one of the numbers; 0 if it is not in `content`. */
static uint32_t number_at(const Numbers *numbers, int64_t place)
{
    if (numbers->plain) return numbers->plain[place];
    place += numbers->first;
    int width = width_of(numbers, place / PACKED);
    return width < 0 ? 0 : number_in(numbers, place / PACKED, width, place % PACKED);
}

#endif
