/* Find the documents of a phrase: the same documents and counts as the NumPy code of `MultiPhrase` in queries/phrase.py.

   Numbers from files are checked before they are used as indexes: MISFIT. */

#include "seek.h"

#include <stdint.h>

/* A term of a phrase. */
typedef struct {
    const int32_t *documents; /* documents of the term, ascending */
    const void *frequencies;
    const void *positions; /* document after document, ascending within each */
    int64_t size; /* number of documents */
    int64_t width; /* bytes of a frequency: 1, 2 or 4 */
    int64_t position_width; /* bytes of a position: 1, 2 or 4 */
    int64_t position_count;
    int64_t offset; /* position in the phrase */
    int64_t place; /* the current index in `documents`; 0 at first, like the rest */
    int64_t summed; /* the index of the first document whose frequency is not in `first` */
    int64_t first; /* the index of the first position of that document */
    int64_t end; /* the end of the positions in the current document */
    int64_t next; /* the current index in `positions` */
} Term;

enum { MISFIT = -1 };

static int64_t sum_of(const void *frequencies, int64_t width, int64_t begin, int64_t end)
{
    int64_t sum = 0;
    if (width == 1) {
        const uint8_t *some = frequencies;
        for (int64_t place = begin; place < end; place++) sum += some[place];
    } else if (width == 2) {
        const uint16_t *some = frequencies;
        for (int64_t place = begin; place < end; place++) sum += some[place];
    } else {
        const uint32_t *some = frequencies;
        for (int64_t place = begin; place < end; place++) sum += some[place];
    }
    return sum;
}

/* Advance to a document; return whether it contains the term. */
static int advance(Term *term, int32_t wanted)
{
    term->place = seek(term->documents, term->size, term->place, wanted);
    return term->place < term->size && term->documents[term->place] == wanted;
}

/* Find the positions of a term in the current document. */
static int find_positions(Term *term)
{
    term->first += sum_of(term->frequencies, term->width, term->summed, term->place);
    term->summed = term->place;
    term->end = term->first + sum_of(term->frequencies, term->width, term->place, term->place + 1);
    return term->end > term->position_count ? MISFIT : 0;
}

static int64_t position_at(const Term *term, int64_t place)
{
    if (term->position_width == 1) return ((const uint8_t *)term->positions)[place];
    if (term->position_width == 2) return ((const uint16_t *)term->positions)[place];
    return ((const int32_t *)term->positions)[place];
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

/* Write the documents in `among`, which ascend, that contain the phrase, and its counts; return their number, or MISFIT. */
int64_t searchapp_phrase(Term *terms, int64_t count, const int32_t *among, int64_t size, int32_t *documents, float *counts)
{
    int64_t found = 0;
    for (int64_t one = 0; one < size; one++) {
        int32_t document = among[one];
        int have = 1;
        for (int64_t number = 0; have && number < count; number++) have = advance(&terms[number], document);
        if (!have) continue;
        for (int64_t number = 0; number < count; number++)
            if (find_positions(&terms[number])) return MISFIT;
        int64_t stands = count_in_document(terms, count);
        documents[found] = document;
        counts[found] = (float)stands;
        found += stands > 0;
    }
    return found;
}
