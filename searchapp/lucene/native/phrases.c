/* Find the documents of a phrase: the same documents and counts as the NumPy code of `MultiPhrase` in queries/phrase.py.

   Numbers from files are checked before they are used as indexes: MISFIT. */

#include "postings.h"

#include <stdlib.h>

/* A term of a phrase. */
typedef struct {
    Documents documents;
    Numbers frequencies; /* packed ones are less one */
    Numbers positions; /* document after document, ascending within each */
    const int64_t *sums; /* per block of packed frequencies: their sum before it; otherwise NULL */
    int64_t position_count;
    int64_t offset; /* position in the phrase */
    int64_t summed; /* the place of the first document whose frequency is not in `first`; 0 at first, like the rest */
    int64_t first; /* the index of the first position of that document */
    int64_t end; /* the end of the positions in the current document */
    int64_t next; /* the current index in `positions` */
} Term;

enum { MISFIT = -1, NO_MEMORY = -2 };

static int64_t frequency_at(const Term *term, int64_t place)
{
    return (int64_t)number_at(&term->frequencies, place) + !term->frequencies.plain;
}

/* Find the positions of a term in the document at a place. */
static int find_positions(Term *term, int64_t place)
{
    if (term->sums) {
        int64_t block = (term->frequencies.first + place) / PACKED, begin = block * PACKED - term->frequencies.first;
        if (begin > term->summed || !term->end) { /* `summed` may be negative: in a block that begins with other terms */
            term->summed = begin;
            term->first = term->sums[block];
        }
    }
    for (; term->summed < place; term->summed++) term->first += frequency_at(term, term->summed);
    term->end = term->first + frequency_at(term, place);
    return term->first < 0 || term->end > term->position_count ? MISFIT : 0;
}

static int64_t position_at(const Term *term, int64_t place)
{
    return number_at(&term->positions, place);
}

/* Count the phrase in the current document: the positions of its first term that all other terms follow. */
static int64_t count_in_document(Term *terms, int64_t count)
{
    int64_t found = 0;
    const Term *first = &terms[0];
    for (int64_t number = 1; number < count; number++) terms[number].next = terms[number].first;
    for (int64_t at = first->first; at < first->end; at++) {
        int64_t begin = position_at(first, at) - first->offset;
        int stands = 1;
        for (int64_t number = 1; stands && number < count; number++) {
            Term *term = &terms[number];
            int64_t next = term->next, wanted = begin + term->offset;
            while (next < term->end && position_at(term, next) < wanted) next++;
            term->next = next;
            stands = next < term->end && position_at(term, next) == wanted;
        }
        found += stands;
    }
    return found;
}

static int64_t count_in_all(Term *terms, Cursor *cursors, int64_t count, const int32_t *among, int64_t size, int32_t *documents, float *counts)
{
    int64_t found = 0;
    for (int64_t one = 0; one < size; one++) {
        int32_t document = among[one];
        int have = 1;
        for (int64_t number = 0; have && number < count; number++) {
            const Documents *some = &terms[number].documents;
            int64_t place = seek(some, &cursors[number], document);
            if (cursors[number].is_misfit) return MISFIT;
            have = place < some->size && document_at(&cursors[number], place) == document;
        }
        if (!have) continue;
        for (int64_t number = 0; number < count; number++)
            if (find_positions(&terms[number], cursors[number].place)) return MISFIT;
        int64_t stands = count_in_document(terms, count);
        documents[found] = document;
        counts[found] = (float)stands;
        found += stands > 0;
    }
    return found;
}

/* Write the documents in `among`, which ascend, that contain the phrase, and its counts. Return their number, MISFIT or
   NO_MEMORY. */
int64_t searchapp_phrase(Term *terms, int64_t count, const int32_t *among, int64_t size, int32_t *documents, float *counts)
{
    Cursor *cursors = calloc((size_t)count, sizeof *cursors);
    if (!cursors) return NO_MEMORY;
    int64_t found = count_in_all(terms, cursors, count, among, size, documents, counts);
    free(cursors);
    return found;
}
