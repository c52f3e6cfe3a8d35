/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSION_SETTLING_H
#define SESSION_SETTLING_H

struct event_header;

/*
 * An event_stage_fn of the queue whose context is the unwinding. Settles a sample: truncates frames
 * unwound with mappings that have since changed, and walks a copy of its stack, for whose tables it
 * may have to wait.
 */
int unwinding__settle(void *unwinding, const struct event_header **event);

#endif
