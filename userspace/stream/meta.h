/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts as events: EVENT_META, one key and one value each (<sysprof/meta_keys.h>), and EVENT_OUTSIDE. */
#ifndef STREAM_META_H
#define STREAM_META_H

#include <stdint.h>

#include <sysprof/meta_keys.h>

#include "base/outside_books.h"
#include "stream/event_queue.h"

#define META_KEY_MAX   256u	    /* with NUL */
#define META_VALUE_MAX (16u * 1024) /* with NUL; cut at a character's edge */

/* One fact. 0 or what `push` returned; -EINVAL: no key, or a very long one. */
int meta_event__emit(event_push_fn push, void *context, uint64_t time, const char *key,
		     const char *value);

/* An EVENT_OUTSIDE of `time` for each row of the books with something new since the last report. 0 or what `push` returned. */
int outside_books__report(struct outside_books *books, event_push_fn push, void *context,
			  uint64_t time);

#endif
