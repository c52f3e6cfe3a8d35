/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of the blob's answers are indices. */
#ifndef SYMBOLIZE_SEALED_PROTOCOL_H
#define SYMBOLIZE_SEALED_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "stream/symbol_blob.h"
#include "tenants/message.h"

struct module_report;
struct sealed_answers;

/* Zeroed at first. */
struct sealed_writer {
	uint64_t flushed; /* when */
	struct symbol_blob blob;
	struct message_buffer message;
};

/* A symbol_sink_fn whose context is the writer. 0, -ENOMEM, or the error of writing. */
int sealed_writer__result(void *writer, size_t index, const struct symbol_result *result);
/* Sends the rest, then the report; frees memory. `error`: the result of resolving. */
int sealed_writer__end(struct sealed_writer *w, int error, const struct module_report *report);
/* Behind the report, the code first. 0, or the error of writing. */
int sealed_writer__bytes(struct sealed_writer *w, const void *data, size_t size);

void sealed_answers__init(struct sealed_answers *a, size_t expected);
void sealed_answers__fini(struct sealed_answers *a);

/*
 * Take the next message. 0; -EBADMSG: no child sends that; -EFBIG: more than so many answers can
 * have; -ENOMEM. After an error it can only be freed.
 */
int sealed_answers__take(struct sealed_answers *a, const struct message_buffer *message);

/* Is code complete, and events of code and nothing else? */
bool sealed_answers__has_code(const struct sealed_answers *a);

/* Pass all results to the sink; addresses without one get none. What the sink returned. */
int sealed_answers__deliver(const struct sealed_answers *a, symbol_sink_fn sink, void *context);

#endif
