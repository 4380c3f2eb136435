/* Scans bytes in one pass. bytewise.py has the same functions in numpy and Arrow, for machines without a compiler. */

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

#if defined(__SSE2__) /* without it numpy is faster, and is used instead */

/* One bit for each of 64 bytes: set if the byte is the sought one. */
static inline uint64_t standing(const uint8_t *bytes, uint8_t sought)
{
    const __m128i wanted = _mm_set1_epi8((char)sought);
    uint64_t bits = 0;
    for (int part = 0; part < 4; part++) {
        const __m128i held = _mm_loadu_si128((const __m128i *)(bytes + 16 * part));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(held, wanted)) << (16 * part);
    }
    return bits;
}

/* Counts how often a byte occurs, and writes the position after each occurrence, up to `room` of them. */
int64_t dagkit_ends(const uint8_t *bytes, int64_t length, uint8_t sought, int32_t *ends, int64_t room)
{
    int64_t found = 0, from = 0;
    for (; from + 64 <= length; from += 64)
        for (uint64_t bits = standing(bytes + from, sought); bits; bits &= bits - 1, found++)
            if (found < room)
                ends[found] = (int32_t)(from + __builtin_ctzll(bits) + 1);
    for (; from < length; from++)
        if (bytes[from] == sought) {
            if (found < room)
                ends[found] = (int32_t)(from + 1);
            found++;
        }
    return found;
}

#endif

/* Copies the values that begin with a text, or those that do not, and returns their number. Value i lies between
   offsets[i] and offsets[i + 1]. The copies get offsets of their own, one more than there are copies. */
int64_t dagkit_beginning(const uint8_t *bytes, const int32_t *offsets, int64_t count, const uint8_t *text,
                         int32_t length, int32_t wanted, uint8_t *copies, int32_t *copied)
{
    int64_t kept = 0;
    int32_t run = 0, reached = 0; /* where the next copy begins in the source, and where the last one ended in the target */
    int held = 0;                 /* whether the previous value is copied */
    copied[0] = 0;
    for (int64_t value = 0; value < count; value++) {
        const int32_t start = offsets[value], stop = offsets[value + 1];
        const int begins = stop - start >= length
                           && (length == 0
                               || (bytes[start] == text[0] && !memcmp(bytes + start + 1, text + 1, length - 1)));
        const int holds = begins == wanted;
        if (holds && !held)
            run = start;
        else if (held && !holds) {
            memcpy(copies + reached, bytes + run, start - run);
            reached += start - run;
        }
        if (holds) {
            copied[kept + 1] = copied[kept] + (stop - start);
            kept++;
        }
        held = holds;
    }
    if (held)
        memcpy(copies + reached, bytes + run, offsets[count] - run);
    return kept;
}
