/* Dot products of vectors of bytes, for `dot_products` in lucene/vectors.py. All sums are exact integers. */

#include <stdint.h>
#include <string.h>

enum { ROWS = 16, TOGETHER = 4, LENGTH = 4096 }; /* rows at a time, which fit into the cache; the greatest length */

/* Write the products of `count` vectors of `length` bytes, at most `LENGTH`, with each query: an array
   (query_count, count). */
void searchapp_dots(const int8_t *vectors, int64_t count, int64_t length, const int16_t *queries, int64_t query_count,
                    int32_t *dots)
{
    int16_t rows[ROWS * LENGTH]; /* as wide as the queries, because processors multiply and add pairs of this width */
    for (int64_t first = 0; first < count; first += ROWS) {
        int64_t some = count - first < ROWS ? count - first : ROWS;
        const int8_t *read = vectors + first * length;
        for (int64_t index = 0; index < some * length; index++) rows[index] = read[index];
        memset(rows + some * length, 0, (size_t)((ROWS - some) * length) * sizeof *rows);
        for (int64_t number = 0; number < query_count; number++) {
            const int16_t *query = queries + number * length;
            for (int64_t row = 0; row < some; row += TOGETHER) {
                const int16_t *a = rows + row * length, *b = a + length, *c = b + length, *d = c + length;
                int32_t sums[TOGETHER] = {0};
                for (int64_t index = 0; index < length; index++) {
                    sums[0] += a[index] * query[index];
                    sums[1] += b[index] * query[index];
                    sums[2] += c[index] * query[index];
                    sums[3] += d[index] * query[index];
                }
                int64_t kept = some - row < TOGETHER ? some - row : TOGETHER;
                memcpy(dots + number * count + first + row, sums, (size_t)kept * sizeof *sums);
            }
        }
    }
}
