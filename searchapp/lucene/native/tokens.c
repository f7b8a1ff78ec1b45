/* Divide ASCII texts into tokens, and number their distinct terms, for analysis/bulk.py.

   The tokenizers of analysis/tokenizers.py are the reference: this code returns the same tokens. */

#include <stdint.h>
#include <string.h>

/* Classes of characters as bits: LETTER, DIGIT and CONNECTOR are in tokens; IN_WORD only between two letters, IN_NUMBER only
   between two digits. A token has a letter or a digit. (UAX #29, WB5 to WB13b, in ASCII.) */
enum { LETTER = 1, DIGIT = 2, CONNECTOR = 4, IN_WORD = 8, IN_NUMBER = 16, IN_TOKEN = LETTER | DIGIT | CONNECTOR };

enum { TOO_LONG = -1 }; /* instead of the number of tokens of a text */

/* Texts, one after the other, and their tokens. */
typedef struct {
    const uint8_t *text; /* bytes below 128 */
    const int64_t *ends; /* per text */
    int64_t count;
    const uint8_t *classes; /* 128 elements */
    const uint64_t (*following)[2]; /* per character, a bit for each one that continues a token after it; NULL: by classes */
    int64_t limit; /* the maximum length of a token */
    int64_t slot_count; /* a power of 2, more than the number of tokens */
    int32_t *slots; /* a hash table of the numbers of terms; -1 at first */
    int32_t *counts; /* result, per text: its number of tokens, or TOO_LONG */
    int32_t *terms; /* result, per token: the number of its term in order of appearance */
    int64_t (*spans)[2]; /* result, per term: the begin and the end of its first occurrence */
} Texts;

/* Return the end of the token that begins at `at`, and the classes of its characters. */
static int64_t end_of(const Texts *texts, int64_t at, int64_t end, int *found)
{
    if (texts->following) {
        *found = LETTER;
        for (at++; at < end; at++) {
            uint8_t next = texts->text[at];
            if (!(texts->following[texts->text[at - 1]][next >> 6] >> (next & 63) & 1)) break;
        }
        return at;
    }
    int before = texts->classes[texts->text[at++]];
    *found = before;
    for (; at < end; at++) {
        int class = texts->classes[texts->text[at]];
        if (!(class & IN_TOKEN)) {
            int between = (class & IN_WORD && before & LETTER ? LETTER : 0) | (class & IN_NUMBER && before & DIGIT ? DIGIT : 0);
            if (at + 1 == end || !(texts->classes[texts->text[at + 1]] & between)) break;
            class = 0;
        }
        before = class;
        *found |= class;
    }
    return at;
}

/* Return the number of a term; a new one gets `next`. */
static int32_t number_of(const Texts *texts, int64_t begin, int64_t end, int32_t next)
{
    const uint8_t *term = texts->text + begin;
    int64_t size = end - begin;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int64_t at = 0; at < size; at++) hash = (hash ^ term[at]) * 0x100000001b3u; /* FNV-1a */
    uint64_t mask = (uint64_t)texts->slot_count - 1, slot = (hash ^ hash >> 32) & mask;
    for (; texts->slots[slot] >= 0; slot = (slot + 1) & mask) {
        const int64_t *span = texts->spans[texts->slots[slot]];
        if (span[1] - span[0] == size && !memcmp(texts->text + span[0], term, (size_t)size)) return texts->slots[slot];
    }
    texts->slots[slot] = next;
    texts->spans[next][0] = begin;
    texts->spans[next][1] = end;
    return next;
}

/* Find the tokens of all texts; return the number of distinct terms. A text with a longer token has none. */
int64_t searchapp_tokens(const Texts *texts)
{
    int64_t begin = 0, tokens = 0;
    int32_t terms = 0;
    for (int64_t number = 0; number < texts->count; number++) {
        int64_t end = texts->ends[number], first = tokens;
        int is_short = 1;
        for (int64_t at = begin; is_short && at < end;) {
            if (!(texts->classes[texts->text[at]] & IN_TOKEN)) {
                at++;
                continue;
            }
            int found;
            int64_t stop = end_of(texts, at, end, &found);
            if (found & (LETTER | DIGIT)) {
                is_short = stop - at <= texts->limit;
                int32_t term = number_of(texts, at, stop, terms);
                terms += term == terms;
                texts->terms[tokens++] = term;
            }
            at = stop;
        }
        if (!is_short) tokens = first; /* its terms stay, without tokens */
        texts->counts[number] = is_short ? (int32_t)(tokens - first) : TOO_LONG;
        begin = end;
    }
    return terms;
}

/* Fill the number of terms of the part at each of `count` places, and their terms one after the other unless `expanded` is
   NULL; return the number of all.

   The places are indices of `parts`. The terms of a part begin at its start, and end at the next. */
int64_t searchapp_expand(int64_t count, const int32_t *places, const int32_t *parts, const int32_t *starts,
                         const int32_t *terms, int32_t *sizes, int32_t *expanded)
{
    int64_t total = 0;
    for (int64_t at = 0; at < count; at++) {
        const int32_t *start = starts + parts[places[at]];
        sizes[at] = start[1] - start[0];
        if (expanded) {
            for (int32_t term = start[0]; term < start[1]; term++) expanded[total++] = terms[term];
        } else {
            total += sizes[at];
        }
    }
    return total;
}
