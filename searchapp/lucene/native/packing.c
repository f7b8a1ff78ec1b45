/* Pack and unpack numbers: the same as `_packed_by_numpy` and `_unpacked_by_numpy` in index/packed.py. */

#include "packed.h"

static int bits_of_greatest(const uint32_t *numbers)
{
    uint32_t any = 0;
    int bits = 0;
    for (int place = 0; place < PACKED; place++) any |= numbers[place];
    while (any >> bits && ++bits < WIDEST) {}
    return bits;
}

/* Pack whole blocks. `content`, of 0, has room for the widest blocks and the padding; `ends` gets the end of each block in
   units. */
void searchapp_pack(const uint32_t *numbers, int64_t blocks, uint8_t *content, int64_t *ends)
{
    uint64_t end = 0;
    for (int64_t block = 0; block < blocks; block++, numbers += PACKED) {
        int width = bits_of_greatest(numbers);
        uint64_t bit = end * PACKED, bits;
        for (int place = 0; width && place < PACKED; place++, bit += (uint64_t)width) {
            memcpy(&bits, content + (bit >> 3), sizeof bits);
            bits |= (uint64_t)numbers[place] << (bit & 7);
            memcpy(content + (bit >> 3), &bits, sizeof bits);
        }
        ends[block] = (int64_t)(end += (uint64_t)width);
    }
}

/* Write the numbers of a whole block, or their running sums. The compiler unrolls the loops for a
   constant width: eight numbers begin and end with a byte. */
static inline void decode(const uint8_t *bytes, int width, int is_summed, uint32_t before, uint32_t *to)
{
    const uint64_t mask = ((uint64_t)1 << width) - 1;
    for (int group = 0; group < PACKED / 8; group++, bytes += width, to += 8) {
        uint32_t numbers[8];
        for (int place = 0; place < 8; place++) {
            uint64_t bits;
            memcpy(&bits, bytes + (place * width >> 3), sizeof bits);
            numbers[place] = (uint32_t)(bits >> (place * width & 7) & mask);
        }
        if (is_summed)
            for (int place = 1; place < 8; place++) numbers[place] += numbers[place - 1];
        for (int place = 0; place < 8; place++) to[place] = numbers[place] + before;
        if (is_summed) before = to[7];
    }
}

#define WIDTH(width) case width: decode(bytes, width, is_summed, before, to); break;
#define WIDTHS(width) WIDTH(width) WIDTH(width + 1) WIDTH(width + 2) WIDTH(width + 3)

static inline void decode_block(const uint8_t *bytes, int width, int is_summed, uint32_t before, uint32_t *to)
{
    switch (width) {
        WIDTHS(0) WIDTHS(4) WIDTHS(8) WIDTHS(12) WIDTHS(16) WIDTHS(20) WIDTHS(24) WIDTHS(28) WIDTH(32)
    }
}

#undef WIDTHS
#undef WIDTH

void searchapp_read_block(const Numbers *numbers, int64_t block, int width, uint32_t *to)
{
    decode_block(numbers->content + (int64_t)numbers->offsets[block] * UNIT, width, 0, 0, to);
}

void searchapp_read_sums(const Numbers *numbers, int64_t block, int width, uint32_t before, uint32_t *to)
{
    decode_block(numbers->content + (int64_t)numbers->offsets[block] * UNIT, width, 1, before, to);
}

/* Write parts of the numbers, from `begins` to `ends`, one after the other, or the running sums of each part. Return 1 if a
   block is not in the content: then files were altered. */
int searchapp_unpack(
    const Numbers *numbers, const int64_t *begins, const int64_t *ends, int64_t is_summed, int64_t parts, uint32_t *to)
{
    for (int64_t part = 0; part < parts; part++) {
        uint32_t sum = 0;
        for (int64_t place = begins[part]; place < ends[part];) {
            int64_t block = place / PACKED, first = block * PACKED, end = first + PACKED;
            if (end > ends[part]) end = ends[part];
            int width = width_of(numbers, block);
            if (width < 0) return 1;
            if (end - place == PACKED) {
                if (is_summed) searchapp_read_sums(numbers, block, width, sum, to);
                else searchapp_read_block(numbers, block, width, to);
                to += PACKED;
                place = end;
            } else if (is_summed) {
                for (; place < end; place++) *to++ = sum += number_in(numbers, block, width, place - first);
            } else {
                for (; place < end; place++) *to++ = number_in(numbers, block, width, place - first);
            }
            if (is_summed) sum = to[-1];
        }
    }
    return 0;
}
