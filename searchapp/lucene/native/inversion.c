/* Sort tokens by term, for `Inverter` in index/postings.py, whose NumPy code is the reference. */

#include <stdint.h>

typedef struct {
    int64_t count;
    /* Per token, in the order of documents: its term, document and position. */
    const int32_t *token_terms, *token_documents, *token_positions;
    int64_t term_count;
    /* The results: per term, its first posting and its first position; at the end, their numbers. */
    int64_t *starts, *position_starts;
    /* Per posting, term by term. */
    int32_t *documents;
    uint32_t *frequencies;
    int32_t *positions; /* per token, term by term */
    int32_t *last; /* work space, per term: -1 */
} Tokens;

/* Turn counts, which begin at the index 1, into starts, which begin at the index 1 too. */
static void add_up(int64_t *counts, int64_t term_count)
{
    int64_t sum = 0;
    for (int64_t term = 1; term <= term_count; term++) {
        int64_t count = counts[term];
        counts[term] = sum;
        sum += count;
    }
}

/* Invert; all starts must be 0. Each start at the index of a term plus 1 is the next free place of the term, and so
   finally its end. */
void searchapp_invert(const Tokens *tokens)
{
    int64_t *postings = tokens->starts + 1, *places = tokens->position_starts + 1;
    for (int64_t token = 0; token < tokens->count; token++) {
        int32_t term = tokens->token_terms[token], document = tokens->token_documents[token];
        places[term]++;
        postings[term] += tokens->last[term] != document;
        tokens->last[term] = document;
    }
    for (int64_t term = 0; term < tokens->term_count; term++) tokens->last[term] = -1;
    add_up(tokens->starts, tokens->term_count);
    add_up(tokens->position_starts, tokens->term_count);
    for (int64_t token = 0; token < tokens->count; token++) {
        int32_t term = tokens->token_terms[token], document = tokens->token_documents[token];
        tokens->positions[places[term]++] = tokens->token_positions[token];
        if (tokens->last[term] != document) {
            tokens->documents[postings[term]] = document;
            tokens->frequencies[postings[term]++] = 0;
            tokens->last[term] = document;
        }
        tokens->frequencies[postings[term] - 1]++;
    }
}
