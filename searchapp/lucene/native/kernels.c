/* What the embedded engine computes where a C compiler was found: the best documents of a batch of topics.

   Scores and order are those of `sums` and `topk`, which say the same in NumPy: each sum is made in double, its numbers are
   added in the same order, and it is rounded once to float, so that both ways agree to the last bit. So no product may be
   fused with a sum, see `compiling`. Nothing here knows Python: `kernels` calls it by ctypes, which lets other threads go on. */

#include "keys.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "doubles and floats must be rounded where they are written, see `sums`"
#endif

/* The postings of terms, one term after the other: those of a term are from starts[rank] to starts[rank + 1]. */
typedef struct {
    const int32_t *documents;
    const float *scores;
    const int64_t *starts;
    const int64_t *frequencies; /* of each term: its postings in the whole index; nothing if they are those here */
    int64_t terms;
    int64_t postings;
    int64_t common; /* a row with more postings in the whole index is common, see `rows` */
} Table;

/* Topics have clauses, clauses have rows, a row is a term of a table; `ends` say where those of the next one begin. */
typedef struct {
    int64_t count; /* documents of the index, or of the part of one */
    const int32_t *ranks; /* the place of each document among the ids in order */
    const int32_t *by_rank; /* the document at each place */
    int64_t few; /* a rounded clause with no more postings is `sums.total_of_few` */
    int64_t table_count;
    const Table *tables;
    int64_t topic_count;
    const int64_t *clause_ends; /* of each topic */
    const int64_t *excluded_ends; /* of each topic */
    const int64_t *excluded; /* documents that do not match */
    const uint8_t *all_match; /* of each topic: whether documents with the score 0 match as well */
    const double *tie_breakers; /* of each topic: negative for the sum of the clauses, else for their maximum */
    const int64_t *sizes; /* of each topic: how many documents are asked for */
    const int64_t *row_ends; /* of each clause */
    const uint8_t *rounded; /* of each clause: whether its sum is rounded before it is added */
    const int64_t (*elsewhere)[2]; /* of each clause: its terms that are in other parts only, and their postings; or nothing */
    const int32_t *row_tables;
    const int32_t *row_ranks;
    int64_t dead_count;
    const int32_t *dead; /* documents that never match; they have no postings in tables */
    int64_t width; /* places for each topic in what follows */
    int32_t *documents;
    float *scores;
    int64_t *found; /* of each topic: how many documents there are, or BEYOND */
    double *sums; /* one for each document, all 0 */
    double *clause; /* likewise */
    double *rest; /* likewise */
    float *values; /* likewise */
    uint64_t *keys; /* two for each document */
} Batch;

/* What this was compiled from, which `kernels` compares with the file that it finds. */
const char searchapp_source[] = KERNELS_SOURCE;

enum { DONE = 0, MISFIT = 1 };

enum { BEYOND = -1, NOWHERE = -2 }; /* in the place of a number of documents: a score leaves float; no document has a rank */

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

/* Add up the rows of a clause that are common, are not, or all of them. */
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

/* The sum of a clause's rows, the common ones last: `sums.total`. */
static int total(const Batch *batch, int64_t begin, int64_t end, double *sums)
{
    return add_rows(batch, begin, end, RARE, sums) || add_rows(batch, begin, end, COMMON, sums);
}

/* Move what a clause comes to, rounded, to the sums; it is 0 again then. */
static void move_all(int64_t count, double *restrict clause, double *restrict sums)
{
    for (int64_t document = 0; document < count; document++) {
        sums[document] += (float)clause[document];
        clause[document] = 0;
    }
}

/* The same, where few documents have a score: those of the rows. */
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

/* How a clause is added: row by row, or as one number, see `Scorer._should`. */
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

/* The sum of clauses: `Scorer._should`. Rare rows come first, then common ones, then what is rounded. */
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

/* The greatest of the clauses plus `tie_breaker` times the others: `sums.best`. */
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

/* Let the `size` least of some keys, which are all different, come first, in any order. */
static void select_least(uint64_t *keys, int64_t count, int64_t size)
{
    enum { BITS = 8, BINS = 1 << BITS };
    int64_t settled = 0; /* keys at the beginning that are among the least; those up to `count` may be */
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

/* Sort a few keys. */
static void insert(uint64_t *keys, int64_t count)
{
    for (int64_t place = 1; place < count; place++) {
        uint64_t key = keys[place];
        int64_t to = place;
        for (; to && keys[to - 1] > key; to--) keys[to] = keys[to - 1];
        keys[to] = key;
    }
}

/* Sort keys by their bits from `low` to `high`; those with the same bits stay in their order. `other` has room for as many.
   Returns where they are. */
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

/* Sort keys; `other` has room for as many. Returns where they are. */
static uint64_t *sort(uint64_t *keys, uint64_t *other, int64_t count)
{
    enum { FEW_KEYS = 16, SCORE = 32 }; /* the place of a score in a key */
    uint64_t unlike = 0;
    for (int64_t place = 1; place < count; place++) unlike |= keys[place] ^ keys[0];
    int high = SCORE;
    while (high < 64 && unlike >> high) high++;
    uint64_t *sorted = sort_by(keys, other, count, SCORE, high);
    other = sorted == keys ? other : keys;
    for (int64_t begin = 0, end; begin < count; begin = end) { /* those of one score, by their ids */
        for (end = begin + 1; end < count && sorted[begin] >> SCORE == sorted[end] >> SCORE;) end++;
        if (end - begin <= FEW_KEYS) {
            insert(sorted + begin, end - begin);
        } else if (sort_by(sorted + begin, other, end - begin, 0, SCORE) == other) {
            memcpy(sorted + begin, other, (size_t)(end - begin) * sizeof *other);
        }
    }
    return sorted;
}

/* Round the sums, which are 0 again then; returns whether all of them are floats. */
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

/* The keys of the documents that have no worse score than some bits stand for. Few have: their documents are written down
   before anything else is asked for, without a branch that would be guessed wrong. */
static int64_t gather(const Batch *batch, int32_t least, uint64_t *restrict keys)
{
    const float *restrict values = batch->values;
    int64_t found = 0;
    for (int64_t document = 0; document < batch->count; document++) {
        int32_t bits;
        memcpy(&bits, &values[document], sizeof bits);
        keys[found] = (uint64_t)document;
        found += bits >= least;
    }
    for (int64_t place = 0; place < found; place++) {
        int64_t document = (int64_t)keys[place];
        int32_t bits;
        memcpy(&bits, &values[document], sizeof bits);
        keys[place] = key_of(bits, batch->ranks[document]);
    }
    return found;
}

/* Bits of a score that somewhat more than `size` documents reach, as a sample says; `least` if it does not. */
static int32_t promising(const Batch *batch, int64_t size, int32_t least)
{
    enum { BINS = 512, STEP = 16 }; /* 128 bins an octave, so four octaves */
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

/* The best documents of a topic whose sums are there, which are 0 again then: `topk.best`. */
static int64_t best_of(const Batch *batch, int64_t topic)
{
    uint64_t *keys = batch->keys;
    int64_t size = batch->sizes[topic];
    if (!round_sums(batch->count, batch->sums, batch->values)) return BEYOND;
    int32_t least = batch->all_match[topic] ? 0 : 1; /* what does not match is 0, or negative */
    int64_t found = gather(batch, promising(batch, size, least), keys);
    if (found < size) found = gather(batch, least, keys);
    if (found / 2 > size) { /* to sort some more takes less time */
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

/* The best documents of each topic. MISFIT: some number points where nothing is, the files must have been altered. */
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
            batch->sums[document] = -1; /* no score is negative */
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
