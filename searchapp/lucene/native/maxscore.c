/* Find the best documents of one query, a sum or a maximum of term scores, by MaxScore: for `Pruner` in search/compiled.py.

   A document is scored only if the bounds of its terms' scores reach the threshold: the score of the worst of the best
   documents so far. Bounds are sums in double. Scores have the same bits as those of `scores` in similarity.py and `total`
   in queries/scores.py: they are float where those are, and added in the same order.

   Numbers from files are checked before they are used as indexes: MISFIT. Documents that do not ascend lead to wrong
   results, but not to reads outside arrays. */

#include "maxscore.h"

/* Twice the relative error of one rounded float operation. */
#define ROUNDING (1.0 / (1 << 23))

enum { DONE = 0, MISFIT = 1 };

enum {
#ifdef SMALL /* for tests: small collections reach all branches */
    BLOCK = 16, /* documents that are followed at once */
    WINDOW = 64, /* documents whose bounds are added at once: they fit into the first-level cache */
    STRIDE = 8, /* impacts or bounds that are compared at once */
#else
    BLOCK = 1024,
    WINDOW = 4096,
    STRIDE = 32,
#endif
    SAMPLED = 16, /* one of this many strides of impacts is sampled, to estimate how many reach a bound */
};

/* Measured relative costs: adding a bound with the work that follows from it, checking an added bound, a look-up in a
   bitmap, a search among documents. */
enum { ADDED = 32, PASSED = 6, LOOKED_UP = 12, SEARCHED = 200 };

static int64_t cost_of_look(const Search *search, int64_t number)
{
    return search->marks[number] ? LOOKED_UP : SEARCHED;
}

static void start_over(const Search *search, Cursor *cursors)
{
    for (int64_t number = 0; number < search->query->clause_count; number++)
        cursors[number].place = cursors[number].begin = cursors[number].end = 0;
}

/* Follow documents from clause to clause */

/* Find documents in a clause: `there` gets the positions in `documents` of those that it has, `at` their positions in the
   clause. Return their number. */
static int64_t locate(Search *search, int64_t number, const int32_t *documents, int64_t count, int *there, int64_t *at)
{
    const Clause *clause = &search->clauses[number];
    const Marks *marks = search->marks[number];
    int64_t found = 0;
    if (marks) {
        for (int place = 0; place < count; place++) {
            there[found] = place;
            found += is_marked(marks, documents[place]);
        }
        for (int64_t place = 0; place < found; place++) at[place] = place_of(marks, documents[there[place]]);
        return found;
    }
    Cursor *cursor = &search->following[number];
    for (int place = 0; place < count; place++) {
        int64_t next = seek(&clause->documents, cursor, documents[place]);
        if (next == clause->documents.size) break;
        there[found] = place;
        at[found] = next;
        found += document_at(cursor, next) == documents[place];
    }
    search->looks[search->numbers[number]] += count;
    return found;
}

/* Keep the documents (WINDOW at most) that can reach the threshold with the clauses from `number` on. Return their
   number. */
static int64_t follow(Search *search, int64_t number, int32_t *documents, double *bounds, int64_t count)
{
    int there[WINDOW];
    int64_t at[WINDOW];
    for (; number < search->query->clause_count && count; number++) {
        const uint8_t *impacts = search->clauses[number].impacts;
        const float *upper = search->upper + number * IMPACTS;
        double least = search->threshold - search->rest[number + 1];
        int64_t found = locate(search, number, documents, count, there, at), kept = 0;
        search->worked += count * cost_of_look(search, number);
        for (int64_t place = 0; place < found; place++) bounds[there[place]] += upper[impacts[at[place]]];
        for (int64_t place = 0; place < count; place++) {
            documents[kept] = documents[place];
            bounds[kept] = bounds[place];
            kept += bounds[place] >= least;
        }
        count = kept;
    }
    return count;
}

/* Score the documents whose bounds reach the threshold. */
static void take_all(Search *search, const int32_t *documents, const double *bounds, int64_t count, int64_t first)
{
    for (int64_t place = 0; place < count; place++)
        if (bounds[place] >= search->threshold) take(search, documents[place], first);
}

/* Return the least impact of a clause with which a document without the clauses before can reach the threshold; IMPACTS if
   there is none. */
static int least_impact(const Search *search, int64_t number)
{
    const float *upper = search->upper + number * IMPACTS;
    double least = search->threshold - search->rest[number + 1];
    int impact = 1;
    while (impact < IMPACTS && upper[impact] < least) impact++;
    return impact;
}

/* Return whether one of STRIDE impacts is at least `least`. */
static int reach(const uint8_t *impacts, int least)
{
    uint8_t any = 0;
    for (int place = 0; place < STRIDE; place++) any |= impacts[place] >= (uint8_t)least;
    return any;
}

/* Return the end of the postings from `place` on whose block has no impact of at least `least`. */
static int64_t skip_blocks(const Clause *clause, int64_t place, int least)
{
    int64_t first = clause->documents.numbers.first, block = (first + place) / PACKED - first / PACKED, skipped = block;
    while (place < clause->documents.size && clause->block_impacts && clause->block_impacts[skipped] < least)
        place = (++skipped + first / PACKED) * PACKED - first;
    return place;
}

/* Estimate how many impacts of a clause are at least `least`. */
static int64_t count_reaching(const Clause *clause, int least)
{
    if (least == IMPACTS) return 0;
    int64_t found = 0, seen = 0, size = clause->documents.size;
    for (int64_t first = 0; first < size; first += SAMPLED * STRIDE) {
        int64_t end = first + STRIDE < size ? first + STRIDE : size;
        seen += end - first;
        if (skip_blocks(clause, first, least) >= end) continue;
        for (int64_t place = first; place < end; place++) found += clause->impacts[place] >= least;
    }
    return seen ? found * size / seen : 0;
}

/* Score the documents of a clause that can be among the best, until the cost exceeds `limit`. All documents before
   `stopped` are done. */
static int take_clause(Search *search, int64_t number, int64_t limit, int64_t *stopped)
{
    const Clause *clause = &search->clauses[number];
    const float *upper = search->upper + number * IMPACTS;
    int32_t documents[BLOCK + STRIDE];
    double bounds[BLOCK + STRIDE];
    int64_t size = clause->documents.size;
    Cursor *cursor = &search->adding[number];
    start_over(search, search->following);
    start_over(search, search->scoring);
    start_over(search, search->adding);
    for (int64_t first = 0; first < size;) {
        int least = least_impact(search, number);
        if (least == IMPACTS) break;
        if (search->worked > limit) {
            if (first >= cursor->end && !load(&clause->documents, cursor, first)) return MISFIT;
            *stopped = document_at(cursor, first);
            return (uint32_t)*stopped < search->query->count ? DONE : MISFIT;
        }
        int64_t count = 0;
        for (; (first = skip_blocks(clause, first, least)) < size && count < BLOCK; first += STRIDE) {
            int64_t end = first + STRIDE;
            if (end > size) end = size;
            else if (!reach(clause->impacts + first, least)) continue;
            for (int64_t place = first; place < end;) {
                if (place >= cursor->end && !load(&clause->documents, cursor, place)) return MISFIT;
                int64_t stop = end < cursor->end ? end : cursor->end;
                for (; place < stop; place++) {
                    documents[count] = document_at(cursor, place);
                    bounds[count] = upper[clause->impacts[place]];
                    count += clause->impacts[place] >= least;
                }
            }
        }
        for (int64_t place = 0; place < count; place++)
            if ((uint32_t)documents[place] >= search->query->count) return MISFIT;
        count = follow(search, number + 1, documents, bounds, count);
        take_all(search, documents, bounds, count, number);
    }
    *stopped = search->query->count;
    return DONE;
}

/* Add the bounds of all documents, one window after the other */

/* Add the bounds of a clause to the sums of a window's documents. */
static void add(Search *search, int64_t number, int32_t base, int64_t size, float *sums)
{
    const Clause *clause = &search->clauses[number];
    const float *upper = search->upper + number * IMPACTS;
    Cursor *cursor = &search->adding[number];
    int64_t place = seek(&clause->documents, cursor, base);
    while (place < clause->documents.size) {
        if (place >= cursor->end && !load(&clause->documents, cursor, place)) break;
        int64_t end = cursor->end, offset = 0;
        for (; place < end; place++) {
            offset = (int64_t)document_at(cursor, place) - base;
            if (offset < 0 || offset >= size) break;
            sums[offset] += upper[clause->impacts[place]];
        }
        cursor->place = place;
        if (place < end) break;
    }
}

/* Collect the documents of a window whose sums are at least `least`. */
static int64_t gather(const float *sums, int32_t base, int64_t size, float least, int32_t *documents, double *bounds)
{
    int64_t count = 0;
    for (int64_t first = 0; first < size; first += STRIDE) { /* the arrays have whole strides, padded with 0 */
        int any = 0;
        for (int64_t offset = first; offset < first + STRIDE; offset++) any |= sums[offset] >= least;
        if (!any) continue;
        for (int64_t offset = first; offset < first + STRIDE; offset++) {
            documents[count] = base + (int32_t)offset;
            bounds[count] = sums[offset];
            count += sums[offset] >= least;
        }
    }
    return count;
}

/* Score the documents from `begin` to `stop` that can reach the threshold with the clauses from `first` on.

   In each window, add bounds clause by clause, until following the remaining documents costs less than adding the bounds
   of the next clause. */
static void accumulate(Search *search, int64_t first, int64_t begin, int64_t stop)
{
    float sums[WINDOW];
    double bounds[WINDOW];
    int32_t documents[WINDOW];
    start_over(search, search->following);
    start_over(search, search->scoring);
    start_over(search, search->adding);
    double less = 1 - (double)(search->query->clause_count + 2) * ROUNDING;
    for (int64_t base = begin; base < stop; base += WINDOW) {
        if (first == search->query->clause_count || search->rest[first] < search->threshold) return;
        int64_t size = stop - base < WINDOW ? stop - base : WINDOW;
        int64_t end = first, count = 0;
        memset(sums, 0, sizeof sums);
        do {
            do add(search, end++, (int32_t)base, size, sums);
            while (end < search->query->clause_count && search->rest[end] >= search->threshold);
            double least = (search->threshold - search->rest[end]) * less;
            count = gather(sums, (int32_t)base, size, least > FLT_MIN ? (float)least : FLT_MIN, documents, bounds);
        } while (end < search->query->clause_count &&
                 count * cost_of_look(search, end) >
                     search->clauses[end].documents.size * size / search->query->count * ADDED + size * PASSED);
        for (int64_t place = 0; place < count; place++) bounds[place] /= less;
        count = follow(search, end, documents, bounds, count);
        take_all(search, documents, bounds, count, first);
    }
}

/* Estimate the cost of adding the bounds of the clauses from `number` on: the ones that a window needs, and one more. */
static int64_t cost_of_adding(const Search *search, int64_t number)
{
    int64_t cost = search->query->count * PASSED;
    for (; number < search->query->clause_count; number++) {
        cost += search->clauses[number].documents.size * ADDED;
        if (search->rest[number] < search->threshold) break;
    }
    return cost;
}

/* Estimate the cost of following the documents of a clause. Most of them have none of the later clauses. */
static int64_t cost_of_following(const Search *search, int64_t number)
{
    double bound = search->rest[number] - search->rest[number + 1];
    int64_t looks = 0;
    for (int64_t after = number + 1; after < search->query->clause_count; after++) {
        if (bound + search->rest[after] < search->threshold) break;
        looks += cost_of_look(search, after);
    }
    return looks ? count_reaching(&search->clauses[number], least_impact(search, number)) * looks : 0;
}

/* Find a first threshold: score documents with the greatest impacts, and drop them. */
static int seed(Search *search)
{
    int64_t left = search->query->size + search->query->excluded_count;
    for (int64_t number = 0; number < search->query->clause_count && left > 0; number++) {
        const Clause *clause = &search->clauses[number];
        int64_t seen = clause->documents.size < left * STRIDE ? clause->documents.size : left * STRIDE;
        int64_t counts[IMPACTS] = {0};
        for (int64_t place = 0; place < seen; place++) counts[clause->impacts[place]]++;
        int least = IMPACTS;
        for (int64_t having = 0; least > 1 && having < left;) having += counts[--least];
        Cursor *cursor = &search->adding[number];
        start_over(search, search->scoring);
        for (int64_t place = 0; place < seen && left > 0; place++) {
            if (clause->impacts[place] < least) continue;
            if (place >= cursor->end && !load(&clause->documents, cursor, place)) return MISFIT;
            int32_t document = document_at(cursor, place);
            if ((uint32_t)document >= search->query->count) return MISFIT;
            if (search->query->live && !search->query->live[document]) continue;
            take(search, document, number);
            left--;
        }
    }
    search->found = 0;
    return DONE;
}

static int64_t begin_of(const Query *query, int64_t sum)
{
    return sum ? query->sums[sum - 1].end : 0;
}

/* Append the rare or common clauses of a sum to the current group, in the order of the query. */
static int64_t append(Search *search, int64_t sum, int64_t end_of_order, int takes_rare, int takes_common)
{
    for (int64_t number = begin_of(search->query, sum); number < search->query->sums[sum].end; number++) {
        int is_common = search->query->clauses[number].frequency > search->query->common;
        if (is_common ? takes_common : takes_rare) search->order[end_of_order++] = search->places[number];
    }
    return end_of_order;
}

static void end_group(Search *search, int64_t end_of_order, int is_rounded)
{
    search->group_ends[search->group_count] = end_of_order;
    search->rounded[search->group_count++] = is_rounded;
}

typedef enum { JOINED, SHORT, APART } Kind;

/* Return how a sum is added: clause by clause (JOINED), or as one rounded sum of few postings (SHORT) or many (APART):
   `_row_or_scores` in queries/boolean.py. */
static Kind kind_of(const Search *search, int64_t sum)
{
    const Query *query = search->query;
    int64_t terms = query->sums[sum].elsewhere[0], postings = query->sums[sum].elsewhere[1];
    if (query->tie_breaker >= 0) return APART;
    for (int64_t number = begin_of(query, sum); number < query->sums[sum].end; number++) {
        terms += query->clauses[number].frequency > 0;
        postings += query->clauses[number].frequency;
    }
    if (!query->sums[sum].is_rounded || terms < 2) return JOINED;
    return postings <= query->few ? SHORT : APART;
}

/* Determine the order of additions: rare terms, common terms, rounded sums, optional sums: `total` in queries/scores.py. */
static void arrange(Search *search)
{
    int64_t end = 0, sums = search->query->sum_count - search->query->has_optional;
    search->group_count = 0;
    for (int64_t sum = 0; sum < sums; sum++) {
        Kind kind = kind_of(search, sum);
        if (kind == APART) continue;
        end = append(search, sum, end, 1, kind == SHORT);
        end_group(search, end, kind == SHORT);
    }
    for (int64_t sum = 0; sum < sums; sum++)
        if (kind_of(search, sum) == JOINED) end = append(search, sum, end, 0, 1);
    if (search->query->tie_breaker < 0) end_group(search, end, 0);
    for (int64_t sum = 0; sum < search->query->sum_count; sum++) {
        if (sum < sums && kind_of(search, sum) != APART) continue;
        end = append(search, sum, end, 1, 0);
        end = append(search, sum, end, 0, 1);
        end_group(search, end, 1);
    }
}

static double bound_of(const Clause *clause)
{
    return score_of(clause, clause->edges[clause->greatest]);
}

/* Sort the clauses by descending bound, and compute all bounds. */
static void prepare(Search *search)
{
    int64_t count = search->query->clause_count;
    for (int64_t number = 0; number < count; number++) {
        const Clause *clause = &search->query->clauses[number];
        double bound = bound_of(clause);
        int64_t place = number;
        for (; place && bound_of(&search->clauses[place - 1]) < bound; place--) {
            search->clauses[place] = search->clauses[place - 1];
            search->numbers[place] = search->numbers[place - 1];
        }
        search->clauses[place] = *clause;
        search->numbers[place] = number;
    }
    search->rest[count] = 0;
    for (int64_t place = count; place--;) {
        const Clause *clause = &search->clauses[place];
        float *upper = search->upper + place * IMPACTS;
        for (int impact = 0; impact < IMPACTS; impact++) upper[impact] = score_of(clause, clause->edges[impact]);
        search->rest[place] = upper[clause->greatest] + search->rest[place + 1];
        search->places[search->numbers[place]] = place;
        search->marks[place] = search->query->marks[search->numbers[place]];
        search->looks[place] = 0;
    }
}

/* Divide the memory among the arrays; `searchapp_room` returns its size. */
static void lay_out(Search *search)
{
    const Query *query = search->query;
    int64_t *room = query->room, size = query->size, clauses = query->clause_count, sums = query->sum_count;
    search->keys = (uint64_t *)room;
    search->documents = (int32_t *)(room += size);
    search->scores = (float *)(room += size);
    search->looks = room += size;
    search->numbers = room += clauses;
    search->places = room += clauses;
    search->order = room += clauses;
    search->given = (double *)(room += clauses);
    search->marks = (const Marks **)(room += clauses);
    search->group_ends = room += clauses;
    search->rounded = room += sums + 1;
    search->rest = (double *)(room += sums + 1);
    search->clauses = (Clause *)(room += clauses + 1);
    search->following = (Cursor *)(room += clauses * (int64_t)(sizeof(Clause) / sizeof *room));
    search->scoring = search->following + clauses;
    search->adding = search->scoring + clauses;
    search->upper = (float *)(room + 3 * clauses * (int64_t)(sizeof(Cursor) / sizeof *room));
    for (int64_t number = 0; number < 3 * clauses; number++) {
        Cursor *cursor = &search->following[number];
        cursor->place = cursor->begin = cursor->end = cursor->is_misfit = 0;
    }
}

/* Return the memory of a search, in units of eight bytes. */
int64_t searchapp_room(int64_t clauses, int64_t sums, int64_t size)
{
    int64_t of_clause = 7 + (int64_t)((sizeof(Clause) + 3 * sizeof(Cursor)) / sizeof(int64_t)) + IMPACTS / 2;
    return 3 * size + of_clause * clauses + 2 * sums + 3;
}

/* Mark the documents of a term in a bitmap, which is 0 before: one element per MARKED documents of the segment. */
int searchapp_mark(const Documents *documents, Marks *marks)
{
    Cursor cursor = {0};
    for (int64_t place = 0; place < documents->size;) {
        if (!load(documents, &cursor, place)) return MISFIT;
        for (; place < cursor.end; place++) {
            int32_t document = document_at(&cursor, place);
            if ((uint32_t)document >= documents->count) return MISFIT;
            marks[document / MARKED].bits |= (uint64_t)1 << document % MARKED;
        }
    }
    int64_t before = 0;
    for (int64_t some = 0; some * MARKED < documents->count; some++) {
        marks[some].before = before;
        before += count_bits(marks[some].bits);
    }
    return DONE;
}

/* Find the best documents. Return MISFIT if a number points outside its array: then files were altered. */
int searchapp_search(Query *query)
{
    Search found = {.query = query}, *search = &found;
    for (int64_t number = 0; number < search->query->clause_count; number++) {
        const Clause *clause = &search->query->clauses[number];
        if (clause->documents.size < 1 || clause->greatest >= IMPACTS) return MISFIT;
        const int32_t *plain = (const int32_t *)clause->documents.numbers.plain; /* `load` checks packed documents */
        if (plain && (plain[0] < 0 || plain[clause->documents.size - 1] >= query->count)) return MISFIT;
    }
    lay_out(search);
    prepare(search);
    arrange(search);
    if (seed(search)) return MISFIT;
    for (int64_t number = 0; number < query->clause_count; number++) {
        if (search->rest[number] < search->threshold) break;
        int64_t limit = cost_of_adding(search, number), stopped = 0;
        if (search->worked + cost_of_following(search, number) <= limit &&
            take_clause(search, number, limit, &stopped))
            return MISFIT;
        if (stopped == query->count) continue;
        accumulate(search, number + 1, 0, stopped); /* the documents of this clause before `stopped` are done */
        accumulate(search, number, stopped, query->count);
        break;
    }
    for (int64_t number = 0; number < 3 * query->clause_count; number++)
        if (search->following[number].is_misfit) return MISFIT;
    sort(search);
    query->found = search->found;
    query->documents = search->documents;
    query->scores = search->scores;
    query->looks = search->looks;
    return DONE;
}
