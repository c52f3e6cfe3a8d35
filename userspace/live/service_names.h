/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which services processes are, for targets by name (live/parts/names.h). A process names its
 * service in its environment and memory, so a reader reads those: once when the kernel side asks
 * about the process, then again as its facts are (live/parts/facts.h), because OpenTelemetry's
 * libraries publish late. A more certain name replaces another, and the kernel side gets the new
 * verdict. Facts of targets are reported, and read by nothing else.
 *
 * A child that has executed nothing is of its parent's service at first. Another process that
 * cannot be read (it is gone, its memory does not answer, its user has had his share) is of that of
 * its group or program, which the question has. So a user delays and misleads only decisions on his
 * own processes. The collector's thread uses it.
 */
#ifndef LIVE_SERVICE_NAMES_H
#define LIVE_SERVICE_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "live/parts/names.h"
#include "live/tasks.h"
#include "stream/event_queue.h"
#include "tenants/pool.h"

#define SERVICE_PROCESSES_MAX 16384u

struct name_question_event;
struct service_names;

struct service_names_options {
	struct name_judge judge;
	struct tasks *tasks;
	struct helper_pool *readers; /* ended before free */
	const struct fact_readers *facts;
	int proc_fd;
	struct outside_books *books;
	event_push_fn
		push; /* for EVENT_FACTS of targets, so that a profile has the name; or NULL */
	void *context;
};

/* 0 or -ENOMEM. Functions below: also an error of `push`. */
int service_names__new(const struct service_names_options *options, struct service_names **names);
void service_names__free(struct service_names *s);

/* Reads the processes in /proc: two seconds at most. 0 or -ENOMEM. */
int service_names__read_all(struct service_names *s);

/* Takes a question: if the process is not known, it is read. 0 or -ENOMEM. */
int service_names__ask(struct service_names *s, const struct name_question_event *q);
/* Is the answer to a question still to come? */
bool service_names__awaits(const struct service_names *s, const struct name_question_event *q);
/*
 * The verdict (NAME_…). If the process could not be read, that on what the question shows: the
 * paths of its program and group ("": unknown).
 */
uint32_t service_names__judge(struct service_names *s, const struct name_question_event *q,
			      const char *path, const char *group);
/* The last verdict on a process that lives; 0: there is none. */
uint32_t service_names__of_process(const struct service_names *s, pid_t pid);

/* Reads again what is due. 0 or -ENOMEM. */
int service_names__tick(struct service_names *s, uint64_t now);

/* Verdicts since the last call; `changed`: one replaces another. */
struct service_news {
	bool added, changed;
};
struct service_news service_names__take_news(struct service_names *s);
/* The kernel side is there, which gets the verdicts. */
void service_names__opened(struct service_names *s, struct bpf_session *session);

#endif
