#ifndef SEARCHAPP_SEEK_H
#define SEARCHAPP_SEEK_H

#include <stdint.h>

/* Return the first index, from `place` on, whose document is at least `wanted` (galloping search). Documents ascend. */
static int64_t seek(const int32_t *documents, int64_t size, int64_t place, int32_t wanted)
{
    if (place >= size || documents[place] >= wanted) return place;
    int64_t step = 1;
    while (place + step < size && documents[place + step] < wanted) {
        place += step;
        step *= 2;
    }
    int64_t end = place + step < size ? place + step : size;
    while (end - place > 1) {
        int64_t middle = place + (end - place) / 2;
        int is_before = documents[middle] < wanted;
        place = is_before ? middle : place;
        end = is_before ? end : middle;
    }
    return end;
}

#endif
