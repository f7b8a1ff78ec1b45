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

/* Write parts of the numbers, from `begins` to `ends`, one after the other; with `before` as running sums that begin with
   its number of each part. Return 1 if a block is not in the content: then files were altered. */
int searchapp_unpack(
    const Numbers *numbers, const int64_t *begins, const int64_t *ends, const uint32_t *before, int64_t parts, uint32_t *to)
{
    for (int64_t part = 0; part < parts; part++) {
        uint32_t sum = before ? before[part] : 0;
        for (int64_t place = begins[part]; place < ends[part];) {
            int64_t block = place / PACKED, first = block * PACKED, end = first + PACKED < ends[part] ? first + PACKED : ends[part];
            int width = width_of(numbers, block);
            if (width < 0) return 1;
            if (place == first && end == first + PACKED) {
                if (before) {
                    read_sums(numbers, block, width, sum, to);
                    sum = to[PACKED - 1];
                } else {
                    read_block(numbers, block, width, to);
                }
                to += PACKED;
                place = end;
            } else if (before)
                for (; place < end; place++) *to++ = sum += number_in(numbers, block, width, place - first);
            else
                for (; place < end; place++) *to++ = number_in(numbers, block, width, place - first);
        }
    }
    return 0;
}
