/* Find the best documents of a batch of topics by scoring all documents, for `best_of_batch` in search/compiled.py.

   The NumPy code in queries/scores.py and `top_k` in search/searcher.py are the reference: this code returns the same bits.
   Each sum is computed in double, adds its numbers in the same order, and is rounded to float once. The compiler must not
   fuse products with sums: see FLAGS in compilation.py. Python calls these functions through ctypes, without the GIL. */

#include "keys.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "doubles and floats must be rounded to their own precision (FLT_EVAL_METHOD must be 0)"
#endif

/* Postings of terms, concatenated: the term of rank r has the postings from starts[r] to starts[r + 1]. */
typedef struct {
    const int32_t *documents;
    const float *scores;
    const int64_t *starts;
    const int64_t *frequencies; /* per term: its postings in the whole index; NULL if this table has all of them */
    int64_t terms;
    int64_t postings;
    int64_t common; /* a row with more postings in the whole index is common: `most_of_a_rare_term` in queries/scores.py */
} Table;

/* A batch has topics, a topic has clauses, a clause has rows, and a row is a term of a table. Clauses and rows are
   concatenated; `*_ends` contain the end of each topic's clauses and of each clause's rows. */
typedef struct {
    int64_t count; /* documents of the segment */
    const int32_t *ranks; /* per document: its rank by id */
    const int32_t *by_rank; /* per rank: its document */
    int64_t few; /* a rounded clause with at most this many postings is summed as by `total_of_few` in queries/scores.py */
    int64_t table_count;
    const Table *tables;
    int64_t topic_count;
    const int64_t *clause_ends; /* per topic */
    const int64_t *excluded_ends; /* per topic */
    const int64_t *excluded; /* documents that do not match */
    const uint8_t *all_match; /* per topic: whether documents with the score 0 match too */
    const double *tie_breakers; /* per topic: negative for the sum of its clauses, otherwise for their maximum */
    const int64_t *sizes; /* per topic: the number of requested documents */
    const int64_t *row_ends; /* per clause */
    const uint8_t *rounded; /* per clause: whether its sum is rounded before the addition */
    const int64_t (*elsewhere)[2]; /* per clause: number and postings of terms that occur only in other segments; or NULL */
    const int32_t *row_tables;
    const int32_t *row_ranks;
    int64_t dead_count;
    const int32_t *dead; /* deleted documents, which have no postings in the tables */
    int64_t width; /* elements per topic in `documents` and `scores` */
    int32_t *documents;
    float *scores;
    int64_t *found; /* per topic: the number of documents, or BEYOND */
    double *sums; /* one element per document; 0 before and after each topic, like the next three */
    double *clause;
    double *rest;
    float *values;
    uint64_t *keys; /* two elements per document */
} Batch;

/* The digest of the sources, which native/__init__.py compares with the installed sources. */
const char searchapp_source[] = KERNELS_SOURCE;

enum { DONE = 0, MISFIT = 1 };

enum { BEYOND = -1, NOWHERE = -2 }; /* instead of a number of documents: a score exceeds float; a rank has no document */

enum { SAMPLED = 16 };

typedef struct {
    const int32_t *documents;
    const float *scores;
    int64_t size;
    int64_t frequency; /* postings in the whole index */
    int is_common;
} Row;

static int row_of(const Batch *batch, int64_t number, Row *row)
{
    int64_t which = batch->row_tables[number], rank = batch->row_ranks[number];
    if (which < 0 || which >= batch->table_count) return MISFIT;
    const Table *table = &batch->tables[which];
    if (rank < 0 || rank >= table->terms) return MISFIT;
    int64_t start = table->starts[rank], end = table->starts[rank + 1];
    if (start < 0 || end < start || end > table->postings) return MISFIT;
    int64_t frequency = table->frequencies ? table->frequencies[rank] : end - start;
    *row = (Row){table->documents + start, table->scores + start, end - start, frequency, frequency > table->common};
    return DONE;
}

static int add(const Row *row, int64_t count, double *restrict sums)
{
    for (int64_t place = 0; place < row->size; place++) {
        uint32_t document = (uint32_t)row->documents[place];
        if (document >= count) return MISFIT;
        sums[document] += row->scores[place];
    }
    return DONE;
}

enum { RARE, COMMON, EVERY };

/* Add the common rows of a clause to `sums`, or the rare ones, or all. */
static int add_rows(const Batch *batch, int64_t begin, int64_t end, int which, double *sums)
{
    for (int64_t number = begin; number < end; number++) {
        Row row;
        if (row_of(batch, number, &row)) return MISFIT;
        if (which != EVERY && row.is_common != (which == COMMON)) continue;
        if (add(&row, batch->count, sums)) return MISFIT;
    }
    return DONE;
}

/* Add the rows of a clause to `sums`, the common ones last: `total` in queries/scores.py. */
static int total(const Batch *batch, int64_t begin, int64_t end, double *sums)
{
    return add_rows(batch, begin, end, RARE, sums) || add_rows(batch, begin, end, COMMON, sums);
}

/* Add the rounded scores of a clause to `sums`, and reset `clause` to 0. */
static void move_all(int64_t count, double *restrict clause, double *restrict sums)
{
    for (int64_t document = 0; document < count; document++) {
        sums[document] += (float)clause[document];
        clause[document] = 0;
    }
}

/* Do the same for the documents of the rows only. */
static int move_few(const Batch *batch, int64_t begin, int64_t end, double *clause, double *sums)
{
    for (int64_t number = begin; number < end; number++) {
        Row row;
        if (row_of(batch, number, &row)) return MISFIT;
        for (int64_t place = 0; place < row.size; place++) {
            uint32_t document = (uint32_t)row.documents[place];
            if (document >= batch->count) return MISFIT;
            sums[document] += (float)clause[document];
            clause[document] = 0;
        }
    }
    return DONE;
}

typedef enum { JOINED, FEW, MANY } Kind;

/* Find out how a clause is added: row by row (JOINED), or as one rounded sum of few or many postings: `_row_or_scores` in
   queries/boolean.py. */
static int kind_of(const Batch *batch, int64_t number, int64_t begin, int64_t end, Kind *kind)
{
    *kind = JOINED;
    if (!batch->rounded[number]) return DONE;
    int64_t rows = batch->elsewhere ? batch->elsewhere[number][0] : 0;
    int64_t postings = batch->elsewhere ? batch->elsewhere[number][1] : 0;
    for (int64_t one = begin; one < end; one++) {
        Row row;
        if (row_of(batch, one, &row)) return MISFIT;
        postings += row.frequency;
        rows += row.frequency > 0;
    }
    if (rows > 1) *kind = postings <= batch->few ? FEW : MANY;
    return DONE;
}

/* Compute the sum of clauses: first rare rows and rounded sums of few postings, then common rows, then other sums. */
static int sum_of_clauses(const Batch *batch, int64_t first, int64_t last)
{
    for (int pass = 0; pass < 3; pass++) {
        int64_t begin = first ? batch->row_ends[first - 1] : 0;
        for (int64_t number = first; number < last; number++) {
            int64_t end = batch->row_ends[number];
            Kind kind;
            if (kind_of(batch, number, begin, end, &kind)) return MISFIT;
            if (kind == JOINED && pass < 2) {
                if (add_rows(batch, begin, end, pass ? COMMON : RARE, batch->sums)) return MISFIT;
            } else if (kind == FEW && pass == 0) {
                if (add_rows(batch, begin, end, EVERY, batch->clause)) return MISFIT;
                if (move_few(batch, begin, end, batch->clause, batch->sums)) return MISFIT;
            } else if (kind == MANY && pass == 2) {
                if (total(batch, begin, end, batch->clause)) return MISFIT;
                move_all(batch->count, batch->clause, batch->sums);
            }
            begin = end;
        }
    }
    return DONE;
}

/* Compute the maximum of clauses plus `tie_breaker` times the others: `disjunction_max` in queries/boolean.py. */
static int maximum_of_clauses(const Batch *batch, int64_t first, int64_t last, double tie_breaker)
{
    double *best = batch->sums, *clause = batch->clause, *rest = batch->rest;
    int64_t begin = first ? batch->row_ends[first - 1] : 0;
    for (int64_t number = first; number < last; number++) {
        int64_t end = batch->row_ends[number];
        if (total(batch, begin, end, clause)) return MISFIT;
        for (int64_t document = 0; document < batch->count; document++) {
            double score = (float)clause[document];
            int is_less = score < best[document];
            rest[document] += is_less ? score : best[document];
            best[document] = is_less ? best[document] : score;
            clause[document] = 0;
        }
        begin = end;
    }
    for (int64_t document = 0; document < batch->count; document++) {
        double others = rest[document] * tie_breaker;
        best[document] = best[document] + others;
        rest[document] = 0;
    }
    return DONE;
}

/* Move the `size` smallest keys to the front, in any order (radix select). All keys are different. */
static void select_least(uint64_t *keys, int64_t count, int64_t size)
{
    enum { BITS = 8, BINS = 1 << BITS };
    int64_t settled = 0; /* the first keys that are certainly among the smallest; the next ones, up to `count`, may be */
    for (int shift = 64 - BITS; count > size; shift = shift > BITS ? shift - BITS : 0) {
        int64_t bins[BINS];
        memset(bins, 0, sizeof bins);
        for (int64_t place = settled; place < count; place++) bins[(keys[place] >> shift) % BINS]++;
        uint64_t bound = 0;
        for (int64_t before = settled; before + bins[bound] < size; bound++) before += bins[bound];
        int64_t equal = settled;
        for (int64_t place = settled; place < count; place++) {
            uint64_t key = keys[place], digit = (key >> shift) % BINS;
            if (digit > bound) continue;
            keys[place] = keys[equal];
            keys[equal] = key;
            if (digit < bound) {
                keys[equal] = keys[settled];
                keys[settled++] = key;
            }
            equal++;
        }
        count = equal;
        if (!shift) return;
    }
}

/* Sort a few keys (insertion sort). */
static void insert(uint64_t *keys, int64_t count)
{
    for (int64_t place = 1; place < count; place++) {
        uint64_t key = keys[place];
        int64_t to = place;
        for (; to && keys[to - 1] > key; to--) keys[to] = keys[to - 1];
        keys[to] = key;
    }
}

/* Sort keys by their bits from `low` to `high`, stably (radix sort). `other` is a buffer of the same size. Return the array
   that contains the result. */
static uint64_t *sort_by(uint64_t *keys, uint64_t *other, int64_t count, int low, int high)
{
    enum { BITS = 9, BINS = 1 << BITS };
    for (int shift = low; shift < high; shift += BITS) {
        uint64_t mask = (high - shift < BITS ? 1u << (high - shift) : BINS) - 1;
        uint32_t starts[BINS];
        memset(starts, 0, sizeof starts);
        for (int64_t place = 0; place < count; place++) starts[(keys[place] >> shift) & mask]++;
        uint32_t start = 0;
        for (int bin = 0; bin < BINS; bin++) {
            uint32_t size = starts[bin];
            starts[bin] = start;
            start += size;
        }
        for (int64_t place = 0; place < count; place++) other[starts[(keys[place] >> shift) & mask]++] = keys[place];
        uint64_t *sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

/* Sort keys. `other` is a buffer of the same size. Return the array that contains the result. */
static uint64_t *sort(uint64_t *keys, uint64_t *other, int64_t count)
{
    enum { FEW_KEYS = 16, SCORE = 32 }; /* the first bit of the score in a key */
    uint64_t unlike = 0;
    for (int64_t place = 1; place < count; place++) unlike |= keys[place] ^ keys[0];
    int high = SCORE;
    while (high < 64 && unlike >> high) high++;
    uint64_t *sorted = sort_by(keys, other, count, SCORE, high);
    other = sorted == keys ? other : keys;
    for (int64_t begin = 0, end; begin < count; begin = end) { /* sort keys of the same score by rank */
        for (end = begin + 1; end < count && sorted[begin] >> SCORE == sorted[end] >> SCORE;) end++;
        if (end - begin <= FEW_KEYS) {
            insert(sorted + begin, end - begin);
        } else if (sort_by(sorted + begin, other, end - begin, 0, SCORE) == other) {
            memcpy(sorted + begin, other, (size_t)(end - begin) * sizeof *other);
        }
    }
    return sorted;
}

/* Round `sums` to `values`, and reset `sums` to 0. Return whether all values are finite floats. */
static int round_sums(int64_t count, double *restrict sums, float *restrict values)
{
    int beyond = 0;
    for (int64_t document = 0; document < count; document++) {
        values[document] = (float)sums[document];
        beyond |= !(values[document] <= FLT_MAX);
        sums[document] = 0;
    }
    return !beyond;
}

/* Collect the keys of the documents whose score has at least the bits `least`. Few documents qualify: they are collected
   without a branch, which would be mispredicted, from the strides that have one. */
static int64_t gather(const Batch *batch, int32_t least, uint64_t *restrict keys)
{
    enum { STRIDE = 32 };
    const float *restrict values = batch->values;
    int64_t found = 0;
    for (int64_t first = 0; first < batch->count; first += STRIDE) {
        int32_t bits[STRIDE] = {0};
        int64_t size = batch->count - first < STRIDE ? batch->count - first : STRIDE;
        if (size == STRIDE) memcpy(bits, values + first, sizeof bits);
        else memcpy(bits, values + first, (size_t)size * sizeof *bits);
        int any = 0;
        for (int place = 0; place < STRIDE; place++) any |= bits[place] >= least;
        for (int64_t place = 0; any && place < size; place++) {
            keys[found] = (uint64_t)(first + place);
            found += bits[place] >= least;
        }
    }
    for (int64_t place = 0; place < found; place++) {
        int64_t document = (int64_t)keys[place];
        int32_t bits;
        memcpy(&bits, &values[document], sizeof bits);
        keys[place] = key_of(bits, batch->ranks[document]);
    }
    return found;
}

/* Estimate, from a sample, the bits of a score that somewhat more than `size` documents reach; return at least `least`. */
static int32_t promising(const Batch *batch, int64_t size, int32_t least)
{
    enum { BINS = 512, STEP = 16 }; /* 128 bins per octave: four octaves */
    int32_t greatest = 0;
    for (int64_t document = 0; document < batch->count; document += SAMPLED) {
        int32_t bits;
        memcpy(&bits, &batch->values[document], sizeof bits);
        greatest = bits > greatest ? bits : greatest;
    }
    uint32_t bins[BINS + 1] = {0};
    for (int64_t document = 0; document < batch->count; document += SAMPLED) {
        int32_t bits;
        memcpy(&bits, &batch->values[document], sizeof bits);
        int64_t bin = ((int64_t)greatest - bits) >> STEP;
        bins[bin < BINS ? bin : BINS]++;
    }
    int64_t place = size / SAMPLED * 5 / 4 + 8, found = 0;
    for (int32_t bin = 0; bin < BINS; bin++) {
        found += bins[bin];
        if (found < place) continue;
        int32_t bound = greatest - ((bin + 1) << STEP) + 1;
        return bound > least ? bound : least;
    }
    return least;
}

/* Select the best documents of a topic from its sums, and reset these to 0: `top_k` in search/searcher.py. */
static int64_t best_of(const Batch *batch, int64_t topic)
{
    uint64_t *keys = batch->keys;
    int64_t size = batch->sizes[topic];
    if (!round_sums(batch->count, batch->sums, batch->values)) return BEYOND;
    int32_t least = batch->all_match[topic] ? 0 : 1; /* the score of a document that does not match is 0 or negative */
    int64_t found = gather(batch, promising(batch, size, least), keys);
    if (found < size) found = gather(batch, least, keys);
    if (found / 2 > size) { /* for fewer keys, sorting all is faster */
        select_least(keys, found, size);
        found = size;
    }
    keys = sort(keys, keys + batch->count, found);
    found = found < size ? found : size;
    int32_t *documents = batch->documents + topic * batch->width;
    float *scores = batch->scores + topic * batch->width;
    for (int64_t place = 0; place < found; place++) {
        int32_t bits = bits_of(keys[place]);
        uint32_t rank = (uint32_t)keys[place];
        if (rank >= batch->count) return NOWHERE;
        int32_t document = batch->by_rank[rank];
        if (document < 0 || document >= batch->count) return NOWHERE;
        memcpy(&scores[place], &bits, sizeof bits);
        documents[place] = document;
    }
    return found;
}

/* Find the best documents of each topic. Return MISFIT if a number points outside its array: then files were altered. */
int searchapp_best(const Batch *batch)
{
    int64_t first = 0, excluded = 0;
    for (int64_t topic = 0; topic < batch->topic_count; topic++) {
        int64_t last = batch->clause_ends[topic];
        double tie_breaker = batch->tie_breakers[topic];
        int misfit = tie_breaker < 0 ? sum_of_clauses(batch, first, last)
                                     : maximum_of_clauses(batch, first, last, tie_breaker);
        if (misfit) return MISFIT;
        int beyond = 0;
        for (; excluded < batch->excluded_ends[topic]; excluded++) {
            int64_t document = batch->excluded[excluded];
            if (document < 0 || document >= batch->count) return MISFIT;
            beyond |= !((float)batch->sums[document] <= FLT_MAX);
            batch->sums[document] = -1; /* scores are not negative */
        }
        for (int64_t place = 0; batch->all_match[topic] && place < batch->dead_count; place++) {
            if ((uint32_t)batch->dead[place] >= batch->count) return MISFIT;
            batch->sums[batch->dead[place]] = -1;
        }
        int64_t found = best_of(batch, topic);
        if (found == NOWHERE) return MISFIT;
        batch->found[topic] = beyond ? BEYOND : found;
        first = last;
    }
    return DONE;
}
