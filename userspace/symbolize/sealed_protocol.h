/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a sandboxed child sends to its parent, in messages of helpers/message.h: the pieces of a blob of
 * stream/symbol_blob.h with an answer for each address in turn, then a report (MESSAGE_DONE). The parent checks each
 * answer when it comes and keeps the bytes; one that our own code cannot have sent ends the child.
 */
#ifndef SYMBOLIZE_SEALED_PROTOCOL_H
#define SYMBOLIZE_SEALED_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "helpers/message.h"
#include "stream/symbol_blob.h"
#include "symbolize/module.h"

/* ---- the child's side ------------------------------------------------------------------------ */

/* Zeroed at first. */
struct sealed_writer {
	uint64_t flushed; /* when */
	struct symbol_blob blob;
	struct message_buffer message;
};

/* A symbol_sink_fn whose context is the writer. 0, -ENOMEM, or what writing met. */
int sealed_writer__result(void *writer, size_t index, const struct symbol_result *result);
/* Sends what is left, then the report, and frees memory. `error`: what resolving returned. */
int sealed_writer__end(struct sealed_writer *w, int error, const struct module_report *report);

/* ---- the parent's side ----------------------------------------------------------------------- */

struct sealed_answers {
	size_t expected; /* requested addresses */
	size_t results;	 /* … and are answered */
	VEC(char) bytes; /* checked answers, then what came of the next one */
	size_t checked;	 /* so many of the bytes are */
	bool finished;	 /* the report has come */
	int error;	 /* in it */
	struct module_report report;
};

void sealed_answers__init(struct sealed_answers *a, size_t expected);
void sealed_answers__fini(struct sealed_answers *a);

/*
 * Take the next message. 0; -EBADMSG: no child sends that; -EFBIG: more than the answers to so many addresses can be;
 * -ENOMEM. After an error it is of no use but to be freed.
 */
int sealed_answers__take(struct sealed_answers *a, const struct message_buffer *message);

/* Pass all results to the sink; addresses without one get none. What the sink returned. */
int sealed_answers__deliver(const struct sealed_answers *a, symbol_sink_fn sink, void *context);

#endif
