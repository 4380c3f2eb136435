/* Copies messages of librdkafka to columns, and sends columns as messages.

   librdkafka is the library that comes with confluent-kafka. Its functions are passed in, and what is needed of its
   public header is declared here, so that neither is necessary to compile this. */

#include <stdint.h>
#include <string.h>

/* The checksum of this source. The library is used only if it equals that of the source beside it. */
#ifndef SOURCE
#define SOURCE 0
#endif
const uint32_t dagkit_source = SOURCE;

typedef struct { /* rd_kafka_message_t */
    int32_t error;
    void *topic;
    int32_t partition;
    void *value;
    size_t value_length;
    void *key;
    size_t key_length;
    int64_t offset;
    void *private;
} message;

typedef struct {
    int64_t (*timestamp)(const message *, int *); /* rd_kafka_message_timestamp */
    int32_t (*headers)(const message *, void **); /* rd_kafka_message_headers */
    int32_t (*send)(void *, ...);                 /* rd_kafka_producev */
    void *(*poll)(void *, int);                   /* rd_kafka_queue_poll */
    const message *(*next)(void *);               /* rd_kafka_event_message_next */
    void (*destroy)(void *);                      /* rd_kafka_event_destroy */
} library;

typedef struct { /* value i lies between starts[i] and starts[i + 1] */
    uint8_t *bytes;
    int64_t *starts;
    uint8_t *known; /* one byte for each value; 0: it is null. NULL: no value is null */
} column;

/* Takes events from a queue, and the message of each, which is NULL if the event is none. If there is no event, waits for
   the first. As events, errors call no functions of the application. */
int64_t dagkit_take(const library *with, void *queue, int32_t millis, void **events, const message **messages,
                    int64_t most)
{
    int64_t taken = 0;
    while (taken < most && (events[taken] = with->poll(queue, taken ? 0 : millis))) {
        messages[taken] = with->next(events[taken]);
        taken++;
    }
    return taken;
}

void dagkit_release(const library *with, void *const *events, int64_t count)
{
    for (int64_t at = 0; at < count; at++)
        with->destroy(events[at]);
}

/* Counts the messages before the first event that is none. The sizes are those of all keys and of all values, and the
   number of messages with headers. */
int64_t dagkit_messages(const library *with, const message *const *messages, int64_t count, int64_t *sizes)
{
    int64_t found = 0;
    void *headers;
    sizes[0] = sizes[1] = sizes[2] = 0;
    for (; found < count && messages[found]; found++) {
        sizes[0] += messages[found]->key_length;
        sizes[1] += messages[found]->value_length;
        sizes[2] += !with->headers(messages[found], &headers);
    }
    return found;
}

static void append(column *to, int64_t at, const void *bytes, size_t length)
{
    to->known[at] = bytes != NULL;
    to->starts[at + 1] = to->starts[at] + length;
    if (length)
        memcpy(to->bytes + to->starts[at], bytes, length);
}

void dagkit_columns(const library *with, const message *const *messages, int64_t count, int64_t *offsets, int64_t *times,
                    column *keys, column *values)
{
    int kind;
    keys->starts[0] = values->starts[0] = 0;
    for (int64_t at = 0; at < count; at++) {
        const message *one = messages[at];
        offsets[at] = one->offset;
        times[at] = with->timestamp(one, &kind);
        append(keys, at, one->key, one->key_length);
        append(values, at, one->value, one->value_length);
    }
}

static inline const void *bytes_of(const column *from, int64_t at)
{
    static const uint8_t empty;
    if (from->known && !from->known[at])
        return NULL;
    return from->bytes ? from->bytes + from->starts[at] : &empty;
}

/* Gives messages from `first` on to a producer, and returns the number of the first that it did not take, with the error
   (else `count`). A time of 0 is the present. */
int64_t dagkit_send(const library *with, void *producer, void *topic, int64_t first, int64_t count, const column *keys,
                    const column *values, const int64_t *times, int32_t *error)
{
    enum { end, topic_object = 2, value = 4, key = 5, flags = 7, timestamp = 8 }; /* rd_kafka_vtype_t */
    const int copy = 2;                                                           /* RD_KAFKA_MSG_F_COPY */
    for (int64_t at = first; at < count; at++) {
        const size_t key_length = keys->starts[at + 1] - keys->starts[at];
        const size_t value_length = values->starts[at + 1] - values->starts[at];
        *error = with->send(producer, topic_object, topic, flags, copy, key, bytes_of(keys, at), key_length, value,
                            bytes_of(values, at), value_length, timestamp, times ? times[at] : (int64_t)0, end);
        if (*error)
            return at;
    }
    return count;
}
