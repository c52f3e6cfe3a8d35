/* SPDX-License-Identifier: BSD-2-Clause */
/* The write side of the profile: what happened beside the samples. */
#ifndef PROFILE_PROFILE_EVENTS_H
#define PROFILE_PROFILE_EVENTS_H

#include <stddef.h>

#include <sysprof/event.h>

struct profile_builder;
struct thread_columns;

/* Before a sample becomes row number `row`. 0, -ENOMEM. */
int builder_note_cut(struct thread_columns *thread, size_t row, enum stack_end end);
/* Times into the bounds of the session and of the lives, which are final. */
void builder_settle_events(struct profile_builder *b);
void builder_freeze_events(struct profile_builder *b);
void builder_free_events(struct profile_builder *b);

#endif
