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

/* The scored documents of a term or of another clause: `ScoreRow.packed` in queries/scores.py. */
typedef struct {
    const int32_t *documents;
    const float *scores;
    int64_t size;
    int64_t frequency; /* documents in the whole index */
    int64_t is_common; /* whether it is added after others: `most_of_a_rare_term` in queries/scores.py */
} Row;

typedef struct {
    int64_t row_end;
    int64_t is_rounded; /* whether the sum of its rows is rounded before the addition of other clauses */
    int64_t elsewhere[2]; /* number and postings of terms that occur only in other segments */
} Clause;

typedef struct {
    int64_t clause_end;
    int64_t excluded_end;
    int64_t size; /* the number of requested documents */
    int64_t all_match; /* whether documents with the score 0 match too */
    double tie_breaker; /* negative for the sum of its clauses, otherwise for their maximum */
} Topic;

/* A batch has topics, a topic has clauses and excluded documents, and a clause has rows, all concatenated. */
typedef struct {
    int64_t count; /* documents of the segment */
    const int32_t *ranks; /* per document: its rank by id */
    const int32_t *by_rank; /* per rank: its document */
    int64_t dead_count;
    const int32_t *dead; /* deleted documents, which no row contains */
    double *sums; /* one element per document; 0 before and after each topic, like the next two */
    double *clause;
    double *rest;
    float *values; /* one element per document */
    uint64_t *keys; /* two elements per document */
    int64_t few; /* a rounded clause with at most this many postings is summed as by `total_of_few` in queries/scores.py */
    const Row *rows;
    const Clause *clauses;
    int64_t topic_count;
    const Topic *topics;
    const int64_t *excluded; /* documents that do not match */
    int64_t width; /* elements per topic in `documents` and `scores` */
    int32_t *documents;
    float *scores;
    int64_t *found; /* per topic: the number of documents, or BEYOND */
} Batch;

/* The digest of the sources, which native/__init__.py compares with the installed sources. */
const char searchapp_source[] = KERNELS_SOURCE;

enum { DONE = 0, MISFIT = 1 };

enum { BEYOND = -1, NOWHERE = -2 }; /* instead of a number of documents: a score exceeds float; a rank has no document */

enum { SAMPLED = 16 };

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
    for (const Row *row = batch->rows + begin; row < batch->rows + end; row++) {
        if (which != EVERY && row->is_common != (which == COMMON)) continue;
        if (add(row, batch->count, sums)) return MISFIT;
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
static void move_few(const Batch *batch, int64_t begin, int64_t end, double *clause, double *sums)
{
    for (const Row *row = batch->rows + begin; row < batch->rows + end; row++) {
        for (int64_t place = 0; place < row->size; place++) {
            int32_t document = row->documents[place]; /* `add` has checked it */
            sums[document] += (float)clause[document];
            clause[document] = 0;
        }
    }
}

typedef enum { JOINED, FEW, MANY } Kind;

/* Find out how a clause is added: row by row (JOINED), or as one rounded sum of few or many postings: `_row_or_scores` in
   queries/boolean.py. */
static Kind kind_of(const Batch *batch, const Clause *clause, int64_t begin)
{
    if (!clause->is_rounded) return JOINED;
    int64_t rows = clause->elsewhere[0], postings = clause->elsewhere[1];
    for (const Row *row = batch->rows + begin; row < batch->rows + clause->row_end; row++) {
        postings += row->frequency;
        rows += row->frequency > 0;
    }
    if (rows <= 1) return JOINED;
    return postings <= batch->few ? FEW : MANY;
}

static int64_t first_row(const Batch *batch, int64_t clause)
{
    return clause ? batch->clauses[clause - 1].row_end : 0;
}

/* Compute the sum of clauses: first rare rows and rounded sums of few postings, then common rows, then other sums. */
static int sum_of_clauses(const Batch *batch, int64_t first, int64_t last)
{
    for (int pass = 0; pass < 3; pass++) {
        int64_t begin = first_row(batch, first);
        for (int64_t number = first; number < last; number++) {
            int64_t end = batch->clauses[number].row_end;
            Kind kind = kind_of(batch, &batch->clauses[number], begin);
            if (kind == JOINED && pass < 2) {
                if (add_rows(batch, begin, end, pass ? COMMON : RARE, batch->sums)) return MISFIT;
            } else if (kind == FEW && pass == 0) {
                if (add_rows(batch, begin, end, EVERY, batch->clause)) return MISFIT;
                move_few(batch, begin, end, batch->clause, batch->sums);
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
    int64_t begin = first_row(batch, first);
    for (int64_t number = first; number < last; number++) {
        int64_t end = batch->clauses[number].row_end;
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

/* Arrays of documents have a multiple of STRIDE elements: STRIDE in search/compiled.py. */
enum { STRIDE = 64, STEP = 8 };

/* Round the sums of a stride to values, and reset them to 0. Return whether a value is no finite float. */
static int round_sums(double *restrict sums, float *restrict values)
{
    int beyond = 0;
    for (int place = 0; place < STRIDE; place++) {
        values[place] = (float)sums[place];
        beyond |= !(values[place] <= FLT_MAX);
        sums[place] = 0;
    }
    return beyond;
}

/* Append the documents of a stride whose score has at least the bits `least` to `found` documents in `keys`. Few documents
   qualify: they are collected without a branch, which would be mispredicted, from the steps that have one. */
static int64_t collect(const float *restrict values, int64_t first, int32_t least, uint64_t *restrict keys, int64_t found)
{
    int32_t bits[STRIDE];
    memcpy(bits, values + first, sizeof bits);
    int any = 0;
    for (int place = 0; place < STRIDE; place++) any |= bits[place] >= least;
    if (!any) return found;
    for (int step = 0; step < STRIDE; step += STEP) {
        any = 0;
        for (int place = step; place < step + STEP; place++) any |= bits[place] >= least;
        for (int place = step; any && place < step + STEP; place++) {
            keys[found] = (uint64_t)(first + place);
            found += bits[place] >= least;
        }
    }
    return found;
}

/* Estimate, from a sample, the bits of a score that somewhat more than `size` documents reach; return at least `least`. */
static int32_t promising(const Batch *batch, int64_t size, int32_t least)
{
    enum { BINS = 512, SHIFT = 16 }; /* 128 bins per octave: four octaves */
    float *sample = batch->values; /* not used yet */
    int64_t sampled = 0;
    float greatest = 0;
    for (int64_t document = 0; document < batch->count; document += SAMPLED) {
        float value = sample[sampled++] = (float)batch->sums[document];
        greatest = value > greatest ? value : greatest;
    }
    int32_t most, bits;
    memcpy(&most, &greatest, sizeof most);
    uint32_t bins[BINS + 1] = {0};
    for (int64_t place = 0; place < sampled; place++) {
        memcpy(&bits, &sample[place], sizeof bits);
        int64_t bin = ((int64_t)most - bits) >> SHIFT;
        bins[bin >= 0 && bin < BINS ? bin : BINS]++;
    }
    int64_t place = size / SAMPLED * 5 / 4 + 8, found = 0;
    for (int32_t bin = 0; bin < BINS; bin++) {
        found += bins[bin];
        if (found < place) continue;
        int32_t bound = most - ((bin + 1) << SHIFT) + 1;
        return bound > least ? bound : least;
    }
    return least;
}

/* Select the best documents of a topic from its sums, and reset these to 0: `top_k` in search/searcher.py. */
static int64_t best_of(const Batch *batch, int64_t topic)
{
    uint64_t *keys = batch->keys;
    int64_t size = batch->topics[topic].size, found = 0;
    int32_t least = batch->topics[topic].all_match ? 0 : 1; /* the score of a document that does not match is 0 or negative */
    int32_t bound = promising(batch, size, least);
    int beyond = 0;
    for (int64_t first = 0; first < batch->count; first += STRIDE) {
        beyond |= round_sums(batch->sums + first, batch->values + first);
        found = collect(batch->values, first, bound, keys, found);
    }
    if (beyond) return BEYOND;
    if (found < size && bound > least) {
        found = 0;
        for (int64_t first = 0; first < batch->count; first += STRIDE)
            found = collect(batch->values, first, least, keys, found);
    }
    while (found && keys[found - 1] >= (uint64_t)batch->count) found--; /* no document, but the end of the last stride */
    for (int64_t place = 0; place < found; place++) {
        int64_t document = (int64_t)keys[place];
        int32_t bits;
        memcpy(&bits, &batch->values[document], sizeof bits);
        keys[place] = key_of(bits, batch->ranks[document]);
    }
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
    for (int64_t number = 0; number < batch->topic_count; number++) {
        const Topic *topic = &batch->topics[number];
        int misfit = topic->tie_breaker < 0 ? sum_of_clauses(batch, first, topic->clause_end)
                                            : maximum_of_clauses(batch, first, topic->clause_end, topic->tie_breaker);
        if (misfit) return MISFIT;
        int beyond = 0;
        for (; excluded < topic->excluded_end; excluded++) {
            int64_t document = batch->excluded[excluded];
            if (document < 0 || document >= batch->count) return MISFIT;
            beyond |= !((float)batch->sums[document] <= FLT_MAX);
            batch->sums[document] = -1; /* scores are not negative */
        }
        for (int64_t place = 0; topic->all_match && place < batch->dead_count; place++) {
            if ((uint32_t)batch->dead[place] >= batch->count) return MISFIT;
            batch->sums[batch->dead[place]] = -1;
        }
        int64_t found = best_of(batch, number);
        if (found == NOWHERE) return MISFIT;
        batch->found[number] = beyond ? BEYOND : found;
        first = topic->clause_end;
    }
    return DONE;
}
