#ifndef SEARCHAPP_POSTINGS_H
#define SEARCHAPP_POSTINGS_H

#include "packed.h"

enum { WIDEST_SUMMED = 24 }; /* bits of differences whose sum, for a block, does not exceed 32 bits */

/* The documents of a term, which ascend. Packed ones are differences to the document before; the first one is not. */
typedef struct {
    Numbers numbers;
    const int32_t *bases; /* per block: the document before it; for packed ones only */
    int64_t size;
    int64_t count; /* documents of the segment */
} Documents;

/* A place among the documents of a term, and the documents around it: a block, or all if they are not packed. */
typedef struct {
    int64_t place;
    int64_t begin, end; /* the places of `documents`; no documents are read at first */
    const int32_t *documents;
    int64_t is_misfit; /* whether a block did not contain documents of the segment: then files were altered */
    int32_t room[PACKED];
} Cursor;

/* Return the first index, from `place` on, whose number is at least `wanted` (galloping search). Numbers ascend. */
static int64_t gallop(const int32_t *numbers, int64_t size, int64_t place, int32_t wanted)
{
    if (place >= size || numbers[place] >= wanted) return place;
    int64_t step = 1;
    while (place + step < size && numbers[place + step] < wanted) {
        place += step;
        step *= 2;
    }
    int64_t end = place + step < size ? place + step : size;
    while (end - place > 1) {
        int64_t middle = place + (end - place) / 2;
        int is_before = numbers[middle] < wanted;
        place = is_before ? middle : place;
        end = is_before ? end : middle;
    }
    return end;
}

/* Read the documents around a place, up to `cursor->end`. Return 0, and end the documents, if files were altered. */
static int load(const Documents *documents, Cursor *cursor, int64_t place)
{
    const Numbers *numbers = &documents->numbers;
    if (numbers->plain) {
        cursor->begin = 0;
        cursor->end = documents->size;
        cursor->documents = (const int32_t *)numbers->plain;
        return 1;
    }
    int64_t block = (numbers->first + place) / PACKED, first = block * PACKED;
    int64_t begin = first > numbers->first ? first : numbers->first, end = numbers->first + documents->size;
    if (end > first + PACKED) end = first + PACKED;
    uint64_t document = begin > numbers->first ? (uint32_t)documents->bases[block] : 0;
    int width = width_of(numbers, block);
    if (width >= 0 && width <= WIDEST_SUMMED && end - begin == PACKED && document < (uint64_t)documents->count) {
        searchapp_read_sums(numbers, block, width, (uint32_t)document, (uint32_t *)cursor->room);
        document = (uint32_t)cursor->room[PACKED - 1];
    } else {
        for (int64_t index = begin; width >= 0 && index < end; index++) {
            document += number_in(numbers, block, width, index - first);
            cursor->room[index - begin] = (int32_t)document;
        }
    }
    if (width < 0 || document >= (uint64_t)documents->count) {
        cursor->is_misfit = 1;
        cursor->place = cursor->begin = cursor->end = documents->size;
        return 0;
    }
    cursor->begin = begin - numbers->first;
    cursor->end = end - numbers->first;
    cursor->documents = cursor->room;
    return 1;
}

static int32_t document_at(const Cursor *cursor, int64_t place)
{
    return cursor->documents[place - cursor->begin];
}

/* Read the first block after the current one whose last document is at least `wanted`; the last one if there is none. */
static int skip(const Documents *documents, Cursor *cursor, int32_t wanted)
{
    int64_t place = cursor->end, first = documents->numbers.first;
    if (!documents->numbers.plain) {
        int64_t block = (first + place) / PACKED, last = (first + documents->size - 1) / PACKED;
        block = gallop(documents->bases + 1, last, block, wanted);
        if (block * PACKED - first > place) place = block * PACKED - first;
    }
    return place < documents->size && load(documents, cursor, place);
}

static int64_t seek_in(Cursor *cursor, int32_t wanted)
{
    int64_t begin = cursor->begin;
    return cursor->place = begin + gallop(cursor->documents, cursor->end - begin, cursor->place - begin, wanted);
}

static int64_t seek_beyond(const Documents *documents, Cursor *cursor, int32_t wanted)
{
    if (cursor->place >= documents->size) return documents->size;
    if (!skip(documents, cursor, wanted) || document_at(cursor, cursor->end - 1) < wanted)
        return cursor->place = documents->size;
    cursor->place = cursor->begin;
    return seek_in(cursor, wanted);
}

/* Advance to the first document that is at least `wanted`. Return its place; the number of documents if there is none. */
static inline int64_t seek(const Documents *documents, Cursor *cursor, int32_t wanted)
{
    if (cursor->place < cursor->end && document_at(cursor, cursor->end - 1) >= wanted) return seek_in(cursor, wanted);
    return seek_beyond(documents, cursor, wanted);
}

#endif
