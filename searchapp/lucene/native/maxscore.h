/* What a search for the best documents knows, what scores it gives, and which documents are the best so far. */

#ifndef SEARCHAPP_MAXSCORE_H
#define SEARCHAPP_MAXSCORE_H

#include "keys.h"
#include "seek.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "doubles and floats must be rounded where they are written, see `sums`"
#endif

enum { IMPACTS = 256 };

/* A term with the documents where it stands, ascending. */
typedef struct {
    const int32_t *documents;
    const uint8_t *impacts;
    const void *frequencies;
    int64_t size;
    int64_t width; /* bytes of a frequency: 1, 2 or 4 */
    int64_t greatest; /* impact */
    const uint8_t *norms; /* the code of each document's length */
    const float *inverses; /* of each code */
    const float *edges; /* what each impact stands for: `FieldReader.edges_above` */
    int64_t frequency; /* in how many documents of the whole index the term is */
    double weight; /* a float */
} Clause;

/* Which of 64 documents have a term, and how many before these have. */
typedef struct {
    uint64_t bits;
    int64_t before;
} Marks;

enum { MARKED = 64 };

/* What is asked. */
typedef struct {
    int64_t count; /* documents of the index, or of the part of one */
    const int32_t *ranks; /* the place of each document among the ids in order */
    const uint8_t *live; /* whether each document counts; nothing if all do */
    double slack; /* what a bound is compared with, of the threshold */
    int64_t few; /* a rounded sum of no more postings is `scores.total_of_few` */
    int64_t common; /* a term with more postings is common, see `rows` */
    int64_t clause_count;
    const Clause *clauses;
    const Marks *const *marks; /* of each clause, or nothing */
    int64_t sum_count; /* the query is made of sums of clauses, see `kernels.Clause` */
    const int64_t *sum_ends; /* of each sum: where the clauses of the next one begin */
    const int64_t *sum_rounded; /* of each sum: whether it is rounded before it is added */
    /* Of each sum: its terms that only occur in other parts of the index, and in how many documents; or nothing. */
    const int64_t *terms_elsewhere, *postings_elsewhere;
    int64_t has_optional; /* whether the last sum is added to the score of what matches another one */
    double tie_breaker; /* negative for the sum of these, else for their maximum */
    int64_t excluded_count;
    const int32_t *excluded; /* documents that do not match, ascending */
    int64_t size; /* how many documents are asked for */
    void *room; /* for what is answered, and the rest of `Search`: see `lay_out` */
    /* Answered: how many are found, and where these are in the room. */
    int64_t found;
    int32_t *documents;
    float *scores;
    int64_t *looks; /* of each clause: how often its documents were searched */
} Query;

typedef struct {
    const Query *query;
    int64_t found;
    /* Of each of those that are found, of which `size` have room. */
    uint64_t *keys;
    int32_t *documents;
    float *scores;
    int64_t *looks; /* of each clause as given */
    Clause *clauses; /* from the greatest bound down */
    const Marks **marks;
    int64_t *numbers; /* of each of these: which one it is as given */
    int64_t *places; /* of each clause as given: where it is among these */
    int64_t group_count; /* what is added up, see `arrange` and `add_up` */
    int64_t *group_ends;
    int64_t *rounded;
    int64_t *order; /* the clauses of the groups */
    /* Of each clause: where `follow`, `take` and `accumulate` are among its documents. */
    int64_t *following, *scoring, *adding;
    double *rest; /* of each clause the greatest score of it and of those after it; then 0 */
    double *given; /* of each clause: what it gives to the document at work, a float */
    float *upper; /* of each clause: the greatest score of each impact */
    double threshold;
    int64_t worked; /* what following documents has taken so far */
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
    return marks[document / MARKED].bits >> document % MARKED & 1;
}

/* Where a document that is marked stands among those of its term. */
static int64_t place_of(const Marks *marks, int32_t document)
{
    const Marks *some = &marks[document / MARKED];
    return some->before + count_bits(some->bits & (((uint64_t)1 << document % MARKED) - 1));
}

/* Scores */

static uint32_t frequency_at(const Clause *clause, int64_t place)
{
    if (clause->width == 1) return ((const uint8_t *)clause->frequencies)[place];
    if (clause->width == 2) return ((const uint16_t *)clause->frequencies)[place];
    return ((const uint32_t *)clause->frequencies)[place];
}

/* How often a term stands in a document, 0 where it does not. */
static uint32_t frequency_in(Search *search, int64_t number, int32_t document)
{
    const Clause *clause = &search->clauses[number];
    const Marks *marks = search->marks[number];
    if (marks) return is_marked(marks, document) ? frequency_at(clause, place_of(marks, document)) : 0;
    search->looks[search->numbers[number]]++;
    int64_t place = search->scoring[number] = seek(clause->documents, clause->size, search->scoring[number], document);
    if (place == clause->size || clause->documents[place] != document) return 0;
    return frequency_at(clause, place);
}

/* What a term gives where it stands `x` times over the norm: `similarity.scores`. */
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

/* The score of a document from what the clauses give: groups are added up, or the greatest counts; then what is optional. */
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

/* The best documents so far: a heap with the worst of them first */

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

/* Put a document where it belongs, from a place down to which no better one is above a worse one. */
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

/* Let the best document come first. */
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

/* Score a document, unless a clause before `first` stands there: it was taken with that one, or is none of the best. What
   has none of the clauses that must match is left out. */
static void take(Search *search, int32_t document, int64_t first)
{
    const Query *query = search->query;
    int64_t required = query->has_optional ? query->sum_ends[query->sum_count - 2] : query->clause_count;
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
