/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The message of a pprof file: its fields, one after the other, and its tables.
 *
 * Strings belong to the file's bytes, which outlive the reader. An error has its place and its
 * reason in the reader's failure.
 */
#ifndef FORMATS_IN_PPROF_MESSAGE_H
#define FORMATS_IN_PPROF_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "base/wire.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/owners.h"
#include "formats/in/weights.h"

#define TAIL_MAX  (1ULL << 61) /* ns, of a sample or a thread */
#define TABLE_MAX (1u << 24)   /* a string of 2 bytes takes 48 in memory */
#define NONE	  UINT32_MAX   /* no index of a value */

/* Of fields from 1 on, as in wire_has_type(). */
#define PROFILE_TYPES	 "bbbbbbvvvvbv*vv"
#define VALUE_TYPE_TYPES "vv"
#define SAMPLE_TYPES	 "**b"
#define LABEL_TYPES	 "vvvv"
#define MAPPING_TYPES	 "vvvvvvvvvv"
#define LOCATION_TYPES	 "vvvbv"
#define LINE_TYPES	 "vvv"
#define FUNCTION_TYPES	 "vvvvv"
#define NUMBERS_MAX	 10 /* of a message */

/* The meanings of labels' keys. */
enum label_kind {
	LABEL_UNREAD,
	LABEL_OTHER,
	LABEL_PID,
	LABEL_TID,
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_COMM,
	LABEL_CGROUP,
	LABEL_GIL,
	LABEL_CONTEXT,
#define X(field, label)                                                                            \
	LABEL_NAME_##field, /* the service names the process where nothing else does */
	PROCESS_NAMES(X)
#undef X
};

struct text {
	const uint8_t *bytes;
	size_t size;
	enum label_kind label; /* of a key, once it is needed */
	/* once they are needed, because they may be long: itself, and the path of a file with this URL */
	struct string_id id, file;
	bool has_id, has_file;
};

/* An element of a table with ids, until it is used. */
struct mapping {
	uint64_t id, start, limit, offset;
	int64_t filename; /* a string */
	struct dso_id dso;
	enum dso_kind kind;
	enum profile_category category;
};

/* The name of a mapping, which many of them may have. */
struct filename {
	int64_t string;
	struct string_id path, name;
	struct string_id in_brackets; /* 0 until it is needed */
	enum dso_kind kind;
	enum profile_category category;
	bool is_library;
};

struct location {
	uint64_t id;
	struct wire field;
	struct location_id location; /* 0 until it is made */
	bool is_idle;
	bool drops;	 /* what it calls … */
	bool is_dropped; /* … and itself */
};

DEFINE_MAP_BY(mappings, struct mapping, uint64_t, id);
DEFINE_MAP_BY(filenames, struct filename, int64_t, string);
DEFINE_MAP_BY(functions, struct pprof_function, uint64_t, id);
DEFINE_MAP_BY(locations, struct location, uint64_t, id);

/* From the first field of a number to the end of the last one; NULL: there is none. */
struct field_span {
	const uint8_t *at, *end;
};

struct pprof {
	const struct import_request *request;
	struct field_span spans[PPROF_DEFAULT_SAMPLE_TYPE + 1]; /* once the tables were read */
	struct import_failure *failure;
	struct profile_builder *b;
	struct frames frames;
	struct process_id any; /* for code without a mapping: the first sample's process */
	struct wire first;     /* that sample */
	struct dso_id
		unmapped[2]; /* of code without a mapping; JIT code; 0 until they are needed */
	VEC(struct text) strings;
	VEC(struct pprof_value_type) types;
	struct mappings mappings;
	struct filenames filenames;
	struct functions functions;
	struct locations locations;
	struct owners owners;
	/* scratch: of a location, of a sample */
	VEC(struct pprof_line) lines;
	VEC(struct profile_line) named_lines;
	numbers path, values;
	struct pprof_value_type period_type;
	int64_t period, time, duration, default_type;
	int64_t drop_frames, keep_frames; /* strings */
	VEC(bool) dropped;		  /* by number of the function; empty: none is */
	uint32_t count_index, cpu_index;  /* of the values; NONE */
	uint32_t event_index; /* what samples of an event that is no clock count; NONE */
	uint64_t unit;	      /* ns of the value at cpu_index */
	uint64_t period_ns;   /* of CPU time; 0: none that is plausible */
	bool ours;	      /* its comments say so */
	enum ticks {
		TICKS_ARE_COUNTS,
		TICKS_ARE_PERIODS,
		TICKS_ARE_CPU_TIME, /* uncounted, in units of tick_cpu */
		TICKS_ARE_WEIGHTS,  /* uncounted, of a file with weights alone */
	} ticks;
	uint64_t tick_cpu;
	bool by_weights;       /* the counts are none, and what samples count */
	uint64_t count_period; /* each of them is a sample; 0: one */
	struct weights counts; /* scratch: of all samples */
	bool by_counts;	       /* as its default_sample_type says */
	bool by_cpu;	       /* CPU time is what samples count */
	bool by_clock;	       /* time or another weight is, which idle threads have, too */
	struct {
		uint64_t divisor;	     /* greatest common one of all CPU times */
		uint64_t count, cpu;	     /* of the first sample with both */
		bool counts;		     /* some are not 0 */
		bool in_proportion, all_cpu; /* counts; no count without CPU time */
	} seen;
};

/* Find an element by its id. Most writers count ids from 1 on, so that it is the place, too. */
#define find_by_id(table, key, find)                                                               \
	({                                                                                         \
		__auto_type table_ = (table);                                                      \
		uint64_t id_ = (key);                                                              \
		bool is_place_ = id_ - 1 < table_->count && table_->data[id_ - 1].id == id_;       \
		is_place_ ? &table_->data[id_ - 1] : find(table_, id_);                            \
	})

/* A field that a walk takes: a message whose fields have these types, or (NULL) any content. */
struct wanted_field {
	uint32_t number;
	const char *types;
	int (*take)(struct pprof *p, const struct wire *w, const void *message);
};

static inline bool pprof_is_word(const uint8_t *bytes, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(word, bytes, size);
}

/* NULL: there is none, or it is the first one, which is empty. */
static inline const struct text *pprof_string_of(const struct pprof *p, int64_t index)
{
	return index > 0 && (uint64_t)index < p->strings.count ? &p->strings.data[index] : NULL;
}

/* By the fields at its beginning. */
bool pprof__is_recognized(const uint8_t *bytes, size_t size);

/* Returns `error`; `what` is a format for the number. */
int pprof__fail_at(const struct pprof *p, const uint8_t *at, int error, const char *what,
		   uint64_t number);

/* The numbers of the fields of a message, whose types are those of a _TYPES; `size` bytes. */
int pprof__read_numbers(const struct pprof *p, const struct wire *w, const char *types, void *to,
			size_t size);
int pprof__take_field(struct pprof *p, const struct wire *w, const struct wanted_field *wanted);

/* The part of the message with all fields of this number; after pprof__read_tables(). */
struct wire pprof__fields(const struct pprof *p, uint32_t number);
/* Passes them to its `take`. */
int pprof__each_field(struct pprof *p, const struct wanted_field *wanted);

/* All tables but locations, the facts of the file, and its first sample. */
int pprof__read_tables(struct pprof *p);
/* Has a table room for one more? */
int pprof__check_room(const struct pprof *p, const struct wire *w, size_t count);
/* An element was added; its id must be new and not 0. */
int pprof__check_id(const struct pprof *p, const struct wire *w, uint64_t id, const void *added,
		    bool is_new);

/* A string of the table, which the caller frees. 0, -EBADMSG or -ENOMEM. */
int pprof__copy_string(const struct pprof *p, int64_t index, char **copy);
/* It, and the path of a file with that URL, as strings of the profile: copied once. */
int pprof__intern(struct pprof *p, int64_t index, struct string_id *id);
int pprof__intern_file(struct pprof *p, int64_t index, struct string_id *id);
bool pprof__string_is(const struct pprof *p, int64_t index, const char *text);

/* The values of a sample, into p->values; its locations, into p->path. */
int pprof__read_values(struct pprof *p, const struct wire *w);
int pprof__read_path(struct pprof *p, const struct wire *w);

#endif
