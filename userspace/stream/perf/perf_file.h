/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The container of perf.data: attributes, features, and the records one after the other, from a file
 * with an index or as `perf record -o -` writes it (pipe mode).
 *
 * By linux/perf_event.h, and perf.data-file-format.txt of the kernel's documentation of perf. Numbers
 * are in the byte order of the machine that recorded, which has to be this one's.
 */
#ifndef STREAM_PERF_PERF_FILE_H
#define STREAM_PERF_PERF_FILE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/cursor.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"

#define PERF_EVENTS_MAX	   65536u /* attributes of a file */
#define PERF_IDS_MAX	   (1u << 20)
#define PERF_BUILD_IDS_MAX (1u << 18)
#define PERF_PATHS_MAX	   (64u << 20) /* bytes of their paths */
#define PERF_FEATURE_MAX   (64u << 20) /* bytes of one */
#define PERF_NAME_SIZE	   128
/* Compressed records unpack to so many times the size of the file, and so many bytes, at most. */
#define PERF_UNPACK_RATIO 100 /* perf's own are packed 3 to 20 times */
#define PERF_UNPACK_FREE  (8ull << 20)

/* Records that perf itself writes have numbers from 64 on. */
enum perf_own_record {
	PERF_HEADER_ATTR = 64,
	PERF_HEADER_TRACING_DATA = 66, /* its data lie behind the record, as those of AUXTRACE */
	PERF_HEADER_BUILD_ID = 67,
	PERF_FINISHED_ROUND = 68,
	PERF_AUXTRACE = 71,
	PERF_STAT = 76,
	PERF_EVENT_UPDATE = 78,
	PERF_HEADER_FEATURE = 80,
	PERF_COMPRESSED = 81,
	PERF_COMPRESSED2 = 83,
};

/* An event that was sampled. */
struct perf_kind {
	struct perf_event_attr attr;
	char name[PERF_NAME_SIZE]; /* empty: the file has none */
	uint64_t samples;	   /* in the file */
	uint64_t lost;		   /* records that its counters say were lost in rings */
	uint64_t period;	   /* of a clock: that of its first sample; 0: none yet … */
	bool periods_differ;	   /* … and whether all others have it */
	bool is_profiled;	   /* they make the profile */
	bool carries;		   /* … by the counters that come with samples of this event */
	uint32_t leader;	   /* + 1, of the event that has its counter; 0: none */
};

/* Do its samples make the profile, or the counters that come with them? */
static inline bool perf_kind__is_read(const struct perf_kind *kind)
{
	return kind->is_profiled || kind->carries;
}

struct perf_id {
	uint64_t id;
	uint32_t kind;
};
MAP_TYPE(perf_ids, struct perf_id);

/* As PERF_RECORD_MMAP2 has them. What perf found in /proc has generation 0. */
struct perf_numbers {
	uint32_t major, minor;
	uint64_t inode, generation;
};

/* Of a path, which may have been several files. */
struct perf_build_id {
	char *path;
	struct perf_numbers numbers; /* of the first mapping; inode 0: none yet */
	bool is_doubtful;	     /* two build ids, or mappings of two files */
	uint8_t size;		     /* 0: only mappings have the path */
	bool is_kernel;		     /* the kernel's, or that of a module */
	uint8_t bytes[BUILD_ID_SIZE];
};
MAP_TYPE(perf_build_ids, struct perf_build_id);

/* Facts about the machine and the recording. Empty: the file has none. */
struct perf_facts {
	char hostname[256], release[256], version[64], architecture[64], cpu[256];
	char command[4096]; /* of perf, with its arguments */
	bool ran_alone;	    /* it sampled the program that it ran */
	uint32_t cpus;	    /* online */
	/* CLOCK_REALTIME and the clock of the samples at one moment, ns; 0: unknown */
	uint64_t wall_clock, sample_clock;
};

struct perf_file {
	int fd;
	uint64_t size;
	bool is_pipe;
	uint64_t data_start, data_end; /* of the records */
	VEC(struct perf_kind) kinds;
	struct perf_ids ids;
	struct perf_build_ids build_ids;
	struct perf_facts facts;
	uint64_t id_bytes, left_ids; /* of ids that were read; ids over a limit */
	uint64_t path_bytes;	     /* of paths with build ids */
	uint64_t left_build_ids;     /* over a limit */
	bool is_known;		     /* it was read once: its kinds stay as they are */
	bool has_times;		     /* an event was recorded with them */
	bool records_build_ids;	     /* an event was recorded with --buildid-mmap */
	bool sizes_differ;	     /* sample types do, so a record without an id is in doubt */
};

/* Is it perf.data, of either byte order? Does not move the descriptor's position. */
bool perf_file__probe(int fd);

/*
 * Reads attributes and features; in pipe mode there are none yet. The descriptor stays the caller's.
 * 0; -ENOTSUP: the other byte order; -EBADMSG: damaged; -ENODATA: no events; -EIO, -ENOMEM. `failure`
 * is filled; perf_file__fini() in any case.
 */
int perf_file__open(int fd, struct perf_file *file, struct failure *failure);
void perf_file__fini(struct perf_file *file);

/* A whole record, and what follows its header. Not 0: reading ends. */
typedef int (*perf_take_fn)(void *context, const struct perf_event_header *record,
			    struct cursor body);

struct perf_reading {
	uint64_t records;
	uint64_t compressed; /* compressed records that are not read: damage, or … */
	bool lacks_library;  /* … libzstd is not here */
	uint64_t left;	     /* bytes from the first record on that is not whole, or is none */
	bool is_damaged;
};

/*
 * Passes on all records in the order of the file, also those in compressed ones, valid during the
 * call. The first reading takes what is about the file (attributes, features, build ids) from them. 0, what `take` returned, -EIO, -ENOMEM.
 */
int perf_file__each(struct perf_file *file, perf_take_fn take, void *context,
		    struct perf_reading *reading);

/* The kind of an id. NULL: none. */
struct perf_kind *perf_file__kind(const struct perf_file *file, uint64_t id);
/*
 * Has the PERF_RECORD_MMAP2 a build-id, instead of device and inode? The kernel hands one record to all
 * listeners of a CPU. If one of them wants build ids, as sysprof does, those of others have the flag and
 * still device and inode (up to Linux 6.18).
 */
bool perf_file__has_build_id(const struct perf_file *file, const struct perf_event_header *record,
			     struct cursor body);
/* First reading: whose file a mapped path is. 0 or -ENOMEM. */
int perf_file__note_mapping(struct perf_file *file, const struct perf_event_header *record,
			    struct cursor body);
/*
 * The build-id in the file's list, which perf read from the path when recording ended. NULL: none, or it
 * is not sure whose it is, because the list has two, or the path was mapped of several files.
 */
const struct perf_build_id *perf_file__build_id(const struct perf_file *file, const char *path);

#endif
