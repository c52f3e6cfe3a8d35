/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about the machine and the recording: EVENT_META, one key and one value each. */
#ifndef CAPTURE_SESSION_META_H
#define CAPTURE_SESSION_META_H

#include <stdint.h>

#include "capture/event_queue.h"

#define META_KEY_MAX	     256u	  /* with NUL */
#define META_VALUE_MAX	     (16u * 1024) /* with NUL; cut at a character's edge */

#define META_KERNEL_RELEASE  "kernel"	       /* uname -r */
#define META_KERNEL_BUILD_ID "kernel_build_id" /* hexadecimal digits */

/* One fact. 0 or what `push` returned; -EINVAL: no key, or a very long one. */
int meta_event__emit(event_push_fn push, void *context, uint64_t time, const char *key,
		     const char *value);

/* What the machine tells of itself: "product", "hostname", "kernel", "kernel_build_id",
 * "architecture", "cpu", "cpus".
 * What cannot be found out is left out. */
int session_meta__emit(event_push_fn push, void *context, uint64_t time);

#endif
