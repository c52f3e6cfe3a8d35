/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts as events: EVENT_META, a key and a value (<sysprof/meta_keys.h>), and EVENT_OUTSIDE. */
#ifndef STREAM_META_H
#define STREAM_META_H

#include <stdint.h>

#include <sysprof/meta_keys.h>

#include "stream/event_queue.h"
#include "tenants/outside_books.h"

#define META_KEY_MAX   256u	    /* with NUL */
#define META_VALUE_MAX (16u * 1024) /* with NUL; cut between characters */

/* 0 or what `push` returned; -EINVAL: no key, or one longer than META_KEY_MAX; -ENOMEM. */
int meta_event__emit(event_push_fn push, void *context, uint64_t time, const char *key,
		     const char *value);

/* An EVENT_OUTSIDE for each row that has changed since the last report. 0 or `push`'s result. */
int outside_books__report(struct outside_books *books, event_push_fn push, void *context,
			  uint64_t time);

#endif
