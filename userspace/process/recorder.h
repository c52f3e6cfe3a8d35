/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From events to a profile: an event_handler that keeps processes, threads and mappings as they
 * were at the time of each sample. It reads nothing from outside, so a live stream and its replay
 * give the same profile.
 */
#ifndef PROCESS_RECORDER_H
#define PROCESS_RECORDER_H

#include <sysprof/event_handler.h>
#include <sysprof/profile_builder.h>

struct recorder;
struct unwind_feed;

struct recorder_options {
	uint64_t period; /* ns, where neither META nor the books tell one; 0 unknown */
};

struct recorder_stats {
	uint64_t known_mappings; /* mapping events that said nothing new */
	uint64_t stale_mappings; /* found gone by a reading of /proc */
	uint64_t rereads;	 /* times that a reading was asked for */
	uint64_t unknown_tasks;	 /* threads that nobody had told of */
};

/*
 * `builder` stays the caller's and must outlive the recorder; so must `requests` (NULL: nobody to
 * ask). A request is answered by later events, never before it returns. `options` may be NULL.
 * NULL: no memory.
 */
struct recorder *recorder__new(struct profile_builder *builder,
			       const struct recorder_options *options,
			       const struct event_source_requests *requests);
void recorder__free(struct recorder *r);

/* Live: processes that are sampled have their mappings published there. It stays the caller's. */
void recorder__set_unwind_feed(struct recorder *r, struct unwind_feed *feed);

/* Valid as long as the recorder. */
struct event_handler recorder__handler(struct recorder *r);

/*
 * A live sample that comes next in the stream, as it is to go on: what was walked by mappings that are not
 * those of its time is cut, and one with a copy of its stack (EVENT_STACK_COPY) is walked by
 * tables where there are any, `max` user frames at most. *sample stays, or is `space`, which holds
 * the deepest sample. 0; -EAGAIN: not yet, for the tables of a copied stack are being built;
 * -ENOMEM.
 */
int recorder__settle(struct recorder *r, const struct sample_event **sample, size_t max,
		     struct sample_event *space);

/*
 * Live, after each piece of the stream: processes whose mappings have changed are published, sampled or not, if
 * that takes no reading of files. 0 or -ENOMEM.
 */
int recorder__publish_changed(struct recorder *r);
/* The same for all that /proc told as targets, whatever it takes. */
int recorder__publish_targets(struct recorder *r);

/* After the last event, symbols included; before profile_builder__finish(). 0 or -ENOMEM. */
int recorder__finish(struct recorder *r);

struct recorder_stats recorder__stats(const struct recorder *r);

#endif
