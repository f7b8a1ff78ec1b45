/* The state of a search for the best documents of a query, the scores of documents, and the heap of the best documents. */

#ifndef SEARCHAPP_MAXSCORE_H
#define SEARCHAPP_MAXSCORE_H

#include "keys.h"
#include "postings.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "doubles and floats must be rounded to their own precision (FLT_EVAL_METHOD must be 0)"
#endif

enum { IMPACTS = 256 };

/* A term, or another leaf of a query, with its postings. */
typedef struct {
    Documents documents;
    Numbers frequencies; /* packed ones are less one */
    const uint8_t *impacts;
    const uint8_t *block_impacts; /* per block of packed postings, from the first one's on: the greatest impact; or NULL */
    int64_t greatest; /* the greatest impact */
    const uint8_t *norms; /* per document: its encoded length */
    const float *inverses; /* per encoded length: the inverse norm */
    const float *edges; /* per impact: its greatest frequency over norm: `edges_above` in index/reader.py */
    int64_t frequency; /* the document frequency in the whole index */
    double weight; /* has the value of a float */
} Clause;

/* Which of 64 documents contain a term, and how many documents before them do. */
typedef struct {
    uint64_t bits;
    int64_t before;
} Marks;

enum { MARKED = 64 };

/* Clauses whose scores are added: `FlatClause` in search/compiled.py. */
typedef struct {
    int64_t end; /* of its clauses */
    int64_t is_rounded; /* whether it is rounded before the addition of other sums */
    int64_t elsewhere[2]; /* number and document frequencies of terms that occur only in other segments */
} Sum;

/* A query, and its result. */
typedef struct {
    int64_t count; /* documents of the segment */
    const int32_t *ranks; /* per document: its rank by id */
    const uint8_t *live; /* per document: whether it is not deleted; NULL if none is */
    double slack; /* bounds are compared with the threshold times this factor, to allow for rounding */
    int64_t few; /* a rounded sum of at most this many postings is summed as by `total_of_few` in queries/scores.py */
    int64_t common; /* a term with more postings is common: `most_of_a_rare_term` in queries/scores.py */
    int64_t clause_count;
    const Clause *clauses;
    const Marks *const *marks; /* per clause: its bitmap, or NULL */
    int64_t sum_count;
    const Sum *sums;
    int64_t has_optional; /* whether the last sum only adds to the scores of documents that match another sum */
    double tie_breaker; /* negative for the sum of these sums, otherwise for their maximum */
    int64_t excluded_count;
    const int32_t *excluded; /* documents that do not match, ascending */
    int64_t size; /* the number of requested documents */
    void *room; /* the memory for the result and the arrays of `Search`: `lay_out` */
    /* The result: the number of documents, and their positions in the memory. */
    int64_t found;
    int32_t *documents;
    float *scores;
    int64_t *looks; /* per clause: the number of searches in its documents */
} Query;

typedef struct {
    const Query *query;
    int64_t found;
    /* One element per found document, `size` at most. */
    uint64_t *keys;
    int32_t *documents;
    float *scores;
    int64_t *looks; /* per clause of the query */
    Clause *clauses; /* by descending bound */
    const Marks **marks;
    int64_t *numbers; /* per sorted clause: its number in the query */
    int64_t *places; /* per clause of the query: its number among the sorted ones */
    int64_t group_count; /* groups of clauses whose scores are added: `arrange`, `add_up` */
    int64_t *group_ends;
    int64_t *rounded;
    int64_t *order; /* the clauses of all groups */
    /* Per clause: its documents as read by `follow`, by `take`, and by `seed`, `take_clause` and `accumulate`. */
    Cursor *following, *scoring, *adding;
    double *rest; /* per clause: the sum of the greatest scores of this and all later clauses; 0 at the end */
    double *given; /* per clause: its score of the current document, a float */
    float *upper; /* per clause: the greatest score of each impact */
    double threshold;
    int64_t worked; /* the cost of following documents so far */
} Search;

static int count_bits(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (int)(bits * 0x0101010101010101 >> 56);
}

static int is_marked(const Marks *marks, int32_t document)
{
    return marks[(uint32_t)document / MARKED].bits >> (uint32_t)document % MARKED & 1;
}

/* Return the position of a marked document among the documents of its term. */
static int64_t place_of(const Marks *marks, int32_t document)
{
    const Marks *some = &marks[(uint32_t)document / MARKED];
    return some->before + count_bits(some->bits & (((uint64_t)1 << (uint32_t)document % MARKED) - 1));
}

/* Scores */

static uint32_t frequency_at(const Clause *clause, int64_t place)
{
    return number_at(&clause->frequencies, place) + !clause->frequencies.plain;
}

/* Return the frequency of a term in a document. */
static uint32_t frequency_in(Search *search, int64_t number, int32_t document)
{
    const Clause *clause = &search->clauses[number];
    const Marks *marks = search->marks[number];
    if (marks) return is_marked(marks, document) ? frequency_at(clause, place_of(marks, document)) : 0;
    search->looks[search->numbers[number]]++;
    int64_t place = seek(&clause->documents, &search->scoring[number], document);
    if (place == clause->documents.size || document_at(&search->scoring[number], place) != document) return 0;
    return frequency_at(clause, place);
}

/* Return the score of a term for `x`, the frequency over the norm: `scores` in similarity.py. */
static float score_of(const Clause *clause, float x)
{
    float weight = (float)clause->weight;
    float divisor = 1.0f + x;
    float quotient = weight / divisor;
    return weight - quotient;
}

static float score_in(const Clause *clause, uint32_t frequency, int32_t document)
{
    return score_of(clause, (float)frequency * clause->inverses[clause->norms[document]]);
}

/* Return the score of the current document: the sum or the maximum of the groups, then the optional clauses. */
static float add_up(const Search *search)
{
    double sum = 0, best = 0, rest = 0;
    int64_t place = 0, groups = search->group_count - search->query->has_optional;
    for (int64_t group = 0; group < groups; group++) {
        int is_apart = search->rounded[group] != 0;
        double of_group = is_apart ? 0 : sum;
        for (; place < search->group_ends[group]; place++) of_group += search->given[search->order[place]];
        if (search->query->tie_breaker >= 0) {
            double score = (float)of_group;
            rest += score < best ? score : best;
            best = score < best ? best : score;
        } else {
            sum = is_apart ? sum + (float)of_group : of_group;
        }
    }
    double others = rest * search->query->tie_breaker;
    float score = (float)(search->query->tie_breaker < 0 ? sum : best + others);
    if (!search->query->has_optional) return score;
    double optional = 0;
    for (; place < search->group_ends[groups]; place++) optional += search->given[search->order[place]];
    return (float)((double)score + (float)optional);
}

/* The best documents so far: a heap whose root is the worst */

static uint64_t key_by(float score, int32_t rank)
{
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return key_of(bits, rank);
}

static float score_by(uint64_t key)
{
    int32_t bits = bits_of(key);
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* Sift a document down the heap from the position `place`, whose own element is free. */
static void sink(Search *search, int64_t place, uint64_t key, int32_t document)
{
    for (;;) {
        int64_t child = 2 * place + 1;
        if (child >= search->found) break;
        if (child + 1 < search->found && search->keys[child + 1] > search->keys[child]) child++;
        if (search->keys[child] <= key) break;
        search->keys[place] = search->keys[child];
        search->documents[place] = search->documents[child];
        place = child;
    }
    search->keys[place] = key;
    search->documents[place] = document;
}

static void keep(Search *search, uint64_t key, int32_t document)
{
    if (search->found < search->query->size) {
        int64_t place = search->found++;
        for (; place && search->keys[(place - 1) / 2] < key; place = (place - 1) / 2) {
            search->keys[place] = search->keys[(place - 1) / 2];
            search->documents[place] = search->documents[(place - 1) / 2];
        }
        search->keys[place] = key;
        search->documents[place] = document;
    } else if (key < search->keys[0]) {
        sink(search, 0, key, document);
    } else {
        return;
    }
    if (search->found < search->query->size) return;
    double threshold = score_by(search->keys[0]) * search->query->slack;
    if (threshold > search->threshold) search->threshold = threshold;
}

/* Sort the heap, the best document first. */
static void sort(Search *search)
{
    int64_t found = search->found;
    while (search->found > 1) {
        uint64_t key = search->keys[0];
        int32_t document = search->documents[0];
        int64_t last = --search->found;
        sink(search, 0, search->keys[last], search->documents[last]);
        search->keys[last] = key;
        search->documents[last] = document;
    }
    search->found = found;
    for (int64_t place = 0; place < found; place++) search->scores[place] = score_by(search->keys[place]);
}

static int is_excluded(const Search *search, int32_t document)
{
    if (search->query->live && !search->query->live[document]) return 1;
    int64_t first = 0, end = search->query->excluded_count;
    while (first < end) {
        int64_t middle = first + (end - first) / 2;
        if (search->query->excluded[middle] == document) return 1;
        if (search->query->excluded[middle] < document) first = middle + 1;
        else end = middle;
    }
    return 0;
}

/* Score a document and offer it to the heap. Skip a document that has a clause before `first`: it was scored with that
   clause, or cannot be among the best. Skip a document that matches none of the required clauses. */
static void take(Search *search, int32_t document, int64_t first)
{
    const Query *query = search->query;
    int64_t required = query->has_optional ? query->sums[query->sum_count - 2].end : query->clause_count;
    int matches = 0;
    for (int64_t number = 0; number < query->clause_count; number++) {
        uint32_t frequency = frequency_in(search, number, document);
        if (frequency && number < first) return;
        search->given[number] = frequency ? score_in(&search->clauses[number], frequency, document) : 0;
        matches |= frequency && search->numbers[number] < required;
    }
    if (!matches || is_excluded(search, document)) return;
    keep(search, key_by(add_up(search), query->ranks[document]), document);
}

#endif
