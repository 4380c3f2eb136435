/* Copies the values of some members of JSON objects, one object a line, to a column for each member.

   All members are checked as strictly as a parser checks them. Whatever is not plain JSON of a common form is left to a
   parser. Members that no column is named after are counted, also in what a parser has read. */

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The checksum of this source. The library is used only if it equals that of the source beside it. */
#ifndef SOURCE
#define SOURCE 0
#endif
const uint32_t dagkit_source = SOURCE;

#define DEEPEST 32 /* values within values */
#define LONGEST 64 /* characters of a number */
#define MOST_NAMES 8 /* of members without a column */

typedef const uint8_t *place; /* the functions return the place after what they read; NULL: leave it to the parser */

static inline place after_blanks(place at, place end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static place after_code(place at, place end) /* of a character, four digits; halves of pairs are left to the parser */
{
    unsigned code = 0;
    if (end - at < 4)
        return NULL;
    for (int digit = 0; digit < 4; digit++) {
        const uint8_t byte = at[digit], lower = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            code = code << 4 | (byte - '0');
        else if (lower >= 'a' && lower <= 'f')
            code = code << 4 | (lower - 'a' + 10);
        else
            return NULL;
    }
    return code == 0 || (code >= 0xD800 && code <= 0xDFFF) ? NULL : at + 4;
}

/* From after the first quote to after the last one. */
static place after_text(place at, place end, int *escapes)
{
    for (;;) {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), highest = _mm_set1_epi8(0x1F);
        for (; end - at >= 16; at += 16) {
            const __m128i held = _mm_loadu_si128((const __m128i *)at);
            const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(held, highest), held);
            const __m128i special = _mm_or_si128(_mm_cmpeq_epi8(held, quote), _mm_cmpeq_epi8(held, backslash));
            const int bits = _mm_movemask_epi8(_mm_or_si128(control, special));
            if (bits) {
                at += __builtin_ctz((unsigned)bits);
                break;
            }
        }
#endif
        while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
            at++;
        if (at == end || *at < 0x20)
            return NULL;
        if (*at == '"')
            return at + 1;
        if (end - at < 2)
            return NULL;
        *escapes = 1;
        if (at[1] == 'u') {
            if (!(at = after_code(at + 2, end)))
                return NULL;
        } else if (at[1] != 0 && strchr("\"\\/bfnrt", at[1]))
            at += 2;
        else
            return NULL;
    }
}

static inline place after_digits(place at, place end)
{
    const place start = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at == start ? NULL : at;
}

static place after_number(place at, place end) /* exponents and many digits are left to the parser, which limits them */
{
    const place start = at;
    if (*at == '-')
        at++;
    if (at < end && *at == '0')
        at++;
    else if (!(at = after_digits(at, end)))
        return NULL;
    if (at < end && *at == '.' && !(at = after_digits(at + 1, end)))
        return NULL;
    return at - start > LONGEST || (at < end && (*at == 'e' || *at == 'E')) ? NULL : at;
}

static place after_word(place at, place end, const char *word)
{
    const int64_t length = (int64_t)strlen(word);
    return end - at >= length && !memcmp(at, word, length) ? at + length : NULL;
}

static place after_value(place at, place end, int depth);

/* From after a bracket or a brace to after the one that closes it. */
static place after_values(place at, place end, int depth, int named)
{
    const uint8_t closing = named ? '}' : ']';
    int escapes = 0;
    if (depth > DEEPEST)
        return NULL;
    at = after_blanks(at, end);
    if (at < end && *at == closing)
        return at + 1;
    for (;; at = after_blanks(at + 1, end)) {
        if (named) {
            if (at == end || *at != '"' || !(at = after_text(at + 1, end, &escapes)))
                return NULL;
            at = after_blanks(at, end);
            if (at == end || *at != ':')
                return NULL;
            at = after_blanks(at + 1, end);
        }
        if (!(at = after_value(at, end, depth)))
            return NULL;
        at = after_blanks(at, end);
        if (at == end)
            return NULL;
        if (*at == closing)
            return at + 1;
        if (*at != ',')
            return NULL;
    }
}

static place after_value(place at, place end, int depth)
{
    int escapes = 0;
    if (at == end)
        return NULL;
    switch (*at) {
    case '"':
        return after_text(at + 1, end, &escapes);
    case '{':
    case '[':
        return after_values(at + 1, end, depth + 1, *at == '{');
    case 't':
        return after_word(at, end, "true");
    case 'f':
        return after_word(at, end, "false");
    case 'n':
        return after_word(at, end, "null");
    default:
        return after_number(at, end);
    }
}

/* The members of one name. The arrays have room for all lines, and the texts for all bytes. */
struct column {
    place name;
    int64_t length;
    int64_t kind;    /* of its values: 'n' for numbers, 'b' for true and false, 't' for texts without escapes */
    uint8_t *texts;  /* the values one after the other, texts without quotes */
    int32_t *starts; /* where each value starts there, and where the last one ends */
    uint8_t *known;  /* whether each object has a value there that is not null */
    struct within *within; /* the members of objects that are its values, or are in them; NULL: they are not counted */
};

static struct column *named(struct column *columns, int64_t count, place name, int64_t length)
{
    for (int64_t index = 0; index < count; index++)
        if (columns[index].length == length && !memcmp(columns[index].name, name, length))
            return columns + index;
    return NULL;
}

/* Copies a value, and returns whether it is of the column's kind, and the first one of its line. */
static int copied(struct column *column, int64_t line, place at, place after, int escapes)
{
    const uint8_t byte = *at;
    const int32_t start = column->starts[line];
    const int is_null = byte == 'n', is_text = byte == '"';
    const uint8_t kind = is_text ? 't' : byte == 't' || byte == 'f' ? 'b' : 'n';
    if (column->starts[line + 1] >= 0 || escapes || byte == '{' || byte == '[' || (!is_null && kind != column->kind))
        return 0;
    const int64_t length = is_null ? 0 : after - at - 2 * is_text;
    memcpy(column->texts + start, at + is_text, length);
    column->starts[line + 1] = start + (int32_t)length;
    column->known[line] = !is_null;
    return 1;
}

/* The members that no column is named after: how many have a value, and the first different names. */
struct others {
    int64_t count;
    int64_t names;
    place name[MOST_NAMES];
    int64_t length[MOST_NAMES];
};

/* The members of objects within objects. */
struct within {
    struct column *columns;
    int64_t count;
    struct others others;
};

static void note_other(struct others *others, place name, int64_t length)
{
    others->count++;
    if (others->names == MOST_NAMES)
        return;
    for (int64_t index = 0; index < others->names; index++)
        if (others->length[index] == length && !memcmp(others->name[index], name, length))
            return;
    others->name[others->names] = name;
    others->length[others->names++] = length;
}

/* From the start of an object to after it. */
static place after_object(
    place at, place end, int64_t line, struct column *columns, int64_t count, struct others *others)
{
    if (at == end || *at != '{')
        return NULL;
    at = after_blanks(at + 1, end);
    if (at < end && *at == '}')
        return at + 1;
    for (;; at = after_blanks(at + 1, end)) {
        const place name = at + 1;
        int escapes = 0;
        if (at == end || *at != '"' || !(at = after_text(name, end, &escapes)) || escapes)
            return NULL;
        const int64_t length = at - name - 1;
        struct column *column = named(columns, count, name, length);
        at = after_blanks(at, end);
        if (at == end || *at != ':')
            return NULL;
        const place value = after_blanks(at + 1, end);
        if (value < end && *value == '"')
            at = after_text(value + 1, end, &escapes);
        else
            at = after_value(value, end, 0);
        if (!at || (column && !copied(column, line, value, at, escapes)))
            return NULL;
        if (!column && *value != 'n')
            note_other(others, name, length);
        at = after_blanks(at, end);
        if (at == end)
            return NULL;
        if (*at == '}')
            return at + 1;
        if (*at != ',')
            return NULL;
    }
}

/* Fills the columns from so many objects, each with a line end. Returns 0 if the bytes are left to a parser. */
int32_t dagkit_members(
    place at, int64_t length, int64_t lines, struct column *columns, int64_t count, struct others *others)
{
    const place end = at + length;
    for (int64_t column = 0; column < count; column++)
        columns[column].starts[0] = 0;
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t column = 0; column < count; column++)
            columns[column].starts[line + 1] = -1;
        if (!(at = after_object(at, end, line, columns, count, others)))
            return 0;
        for (int64_t column = 0; column < count; column++)
            if (columns[column].starts[line + 1] < 0) {
                columns[column].starts[line + 1] = columns[column].starts[line];
                columns[column].known[line] = 0;
            }
        if (at < end && *at == '\r')
            at++;
        if (at < end && *at++ != '\n')
            return 0;
    }
    return at == end;
}

/* From after the first quote to after the last one, of a text that a parser has accepted. */
static place after_accepted_text(place at, place end, int *escapes)
{
    for (;; at += 2) {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
        for (; end - at >= 16; at += 16) {
            const __m128i held = _mm_loadu_si128((const __m128i *)at);
            const int bits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(held, quote), _mm_cmpeq_epi8(held, backslash)));
            if (bits) {
                at += __builtin_ctz((unsigned)bits);
                break;
            }
        }
#endif
        while (at < end && *at != '"' && *at != '\\')
            at++;
        if (at < end && *at == '"')
            return at + 1;
        if (end - at < 2)
            return NULL;
        *escapes = 1;
    }
}

/* From after a bracket or a brace to after the one that closes it, in JSON that a parser has accepted. */
static place after_accepted_values(place at, place end)
{
    int escapes = 0;
    for (int64_t depth = 1; depth; at++) {
        if (at == end)
            return NULL;
        if (*at == '"') {
            if (!(at = after_accepted_text(at + 1, end, &escapes)))
                return NULL;
            at--;
        } else if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
    }
    return at;
}

static place after_accepted_within(place at, place end, struct within *within);

/* From after the brace of an object to after it, in JSON that a parser has accepted. Counts the members that no column is
   named after. */
static place after_accepted_members(
    place at, place end, struct column *columns, int64_t count, struct others *others)
{
    at = after_blanks(at, end);
    while (at < end && *at == '"') {
        const place name = at + 1;
        int escapes = 0;
        if (!(at = after_accepted_text(name, end, &escapes)) || escapes)
            return NULL;
        const int64_t name_length = at - name - 1;
        at = after_blanks(at, end);
        if (at == end || *at != ':')
            return NULL;
        at = after_blanks(at + 1, end);
        if (at == end)
            return NULL;
        struct column *column = named(columns, count, name, name_length);
        if (!column && *at != 'n')
            note_other(others, name, name_length);
        if (*at == '"')
            at = after_accepted_text(at + 1, end, &escapes);
        else if (*at == '{' || *at == '[')
            at = column && column->within ? after_accepted_within(at, end, column->within)
                                          : after_accepted_values(at + 1, end);
        else
            while (at < end && *at != ',' && *at != '}')
                at++;
        if (!at)
            return NULL;
        at = after_blanks(at, end);
        if (at < end && *at == ',')
            at = after_blanks(at + 1, end);
    }
    return at < end && *at == '}' ? at + 1 : NULL;
}

/* From an object or an array of objects, or of such arrays, to after it. */
static place after_accepted_within(place at, place end, struct within *within)
{
    int escapes = 0;
    int64_t depth = 0;
    do {
        if (at == end)
            return NULL;
        if (*at == '{')
            at = after_accepted_members(at + 1, end, within->columns, within->count, &within->others);
        else if (*at == '"')
            at = after_accepted_text(at + 1, end, &escapes);
        else {
            depth += (*at == '[') - (*at == ']');
            at++;
        }
        if (!at)
            return NULL;
    } while (depth);
    return at;
}

/* Counts the members that no column is named after, of objects that a parser has accepted. Returns 0 if only a parser can
   find them, as names with escapes. */
int32_t dagkit_others(place at, int64_t length, struct column *columns, int64_t count, struct others *others)
{
    const place end = at + length;
    while ((at = memchr(at, '{', end - at))) /* of a line */
        if (!(at = after_accepted_members(at + 1, end, columns, count, others)))
            return 0;
    return 1;
}
