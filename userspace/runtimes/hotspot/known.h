/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_KNOWN_H
#define RUNTIMES_HOTSPOT_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/map.h"
#include "base/vec.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/names.h"

struct code_answers;
struct hotspot_blob;

/*
 * Kept while it is certain to be the same. An nmethod is identified by its address and its number,
 * which the JVM gives to no other; its methods exist as long as it does. Any other method is the
 * same if it ran when the JVM had counted as many unloaded classes as now, and its words are the
 * same. What was read of one that ran before may be an unloaded class's remains.
 */

#define HOTSPOT_KNOWN_MAX (512u << 10) /* bytes of one process; then all is read anew */
#define HOTSPOT_KNOWN_ALL (2u << 20)   /* of all processes: then it is HOTSPOT_KNOWN_FEW */
#define HOTSPOT_KNOWN_FEW (64u << 10)
#define HOTSPOT_DEBUG_MAX (128u << 10) /* of one nmethod; larger ones are not kept */

struct hotspot_text {
	struct hotspot_method method;
	struct code_function_event *event;
	uint64_t unloads; /* the JVM's count before it was read */
	bool is_shared;	  /* the method ran at that count: other nmethods may have it, too */
};

struct hotspot_nmethod {
	uint64_t address, check;
	size_t bytes;
	unsigned int text_count; /* of its methods: those looked up */
	struct hotspot_debug debug;
};

struct hotspot_latest {
	uint64_t method;
	uint32_t text; /* number of its last text */
};

struct hotspot_known {
	MAP_TYPE(hotspot_nmethods, struct hotspot_nmethod) nmethods; /* by address */
	MAP_TYPE(hotspot_latest_map, struct hotspot_latest) latest;
	VEC(struct hotspot_text) texts;
	size_t bytes;
};

struct hotspot_found;

/* Before a question: drops all if it is too much. */
void hotspot_known__limit(struct hotspot_known *known);
void hotspot_known__fini(struct hotspot_known *known);

/* The known data of an nmethod that was found. NULL: no memory. Valid until the next one. */
struct hotspot_nmethod *hotspot_known__nmethod(struct hotspot_known *known,
					       const struct hotspot_blob *blob);
/* More of it was read: keeps it, if it `is_sure` that it was there all the time. */
void hotspot_known__keep(struct hotspot_known *known, struct hotspot_nmethod *nmethod,
			 bool is_sure);

/*
 * *text, if CONFIRMED: the number of the text of a method that ran at `time`, CLOCK_MONOTONIC ns;
 * reads it if it is not known. `check`: its ConstMethod*; 0: any. found->unloads is that of after the
 * reading: a known text counts only if no class has been unloaded up to now.
 */
enum code_state hotspot_known__text(struct code_answers *answers, struct hotspot_found *found,
				    uint64_t method, uint64_t check, uint64_t time, uint32_t *text);
/* -ENODATA: is not what was sampled; else it is not known. */
enum code_state hotspot_state_of_error(int err);

#endif
