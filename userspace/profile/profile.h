/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the modules of profile/; the model itself is <sysprof/profile.h>. */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <sysprof/profile.h>

/* profile__source_line() of a line in a dso of this kind. */
struct profile_line source_line(const struct profile_line *line, enum dso_kind kind,
				const struct profile_function *function);

/* Times and sums stay below this, so that differences fit into signed 64 bits. */
#define PROFILE_TIME_MAX (UINT64_MAX >> 2)

/* The arrays of a profile, and of its builder: X(array, count). Tables begin with a placeholder. */
#define PROFILE_TABLES(X)                                                                          \
	X(dsos, dso_count)                                                                         \
	X(functions, function_count)                                                               \
	X(locations, location_count)                                                               \
	X(stacks, stack_count)                                                                     \
	X(processes, process_count)                                                                \
	X(threads, thread_count)
#define PROFILE_LISTS(X)                                                                           \
	X(sample_types, sample_type_count)                                                         \
	X(lines, line_count)                                                                       \
	X(facts, fact_count)                                                                       \
	X(clauses, clause_count)                                                                   \
	X(books, books_count)                                                                      \
	X(jits, jit_count)                                                                         \
	X(runtimes, runtime_count)                                                                 \
	X(gils, gil_count)                                                                         \
	X(meta, meta_count)                                                                        \
	X(lost_ranges, lost_range_count)                                                           \
	X(outside, outside_count)                                                                  \
	X(memories, memory_count)                                                                  \
	X(markers, marker_count)                                                                   \
	X(epochs, epoch_count)                                                                     \
	X(codes, code_count)                                                                       \
	X(code_rows, code_row_count)                                                               \
	X(sources, source_count)

/*
 * X(type, name), as in struct profile_samples. `ticks` is empty if all are one, `events` if all are
 * ticks, `gil` and `cpu` if nothing is known, `context` if nothing is unusual; those after it are of WALL
 * samples.
 */
#define PROFILE_SAMPLE_COLUMNS(X)                                                                  \
	X(uint64_t, time)                                                                          \
	X(uint64_t, weight)                                                                        \
	X(struct stack_id, stack)                                                                  \
	X(struct string_id, comm)                                                                  \
	X(uint64_t, ticks)                                                                         \
	X(uint64_t, events)                                                                        \
	X(uint8_t, gil)                                                                            \
	X(uint8_t, context)                                                                        \
	X(uint16_t, cpu)                                                                           \
	X(uint8_t, state)                                                                          \
	X(struct thread_id, holder)                                                                \
	X(uint64_t, since)                                                                         \
	X(uint64_t, until)

/* Are addresses of such a dso valid in one process only? */
static inline bool dso_kind_is_private(enum dso_kind kind)
{
	return kind == DSO_JIT || kind == DSO_UNKNOWN;
}

static inline bool codes_are_of_one_space(const struct profile_code *a,
					  const struct profile_code *b)
{
	return a->dso.v == b->dso.v && a->process.v == b->process.v && a->version == b->version;
}

/* Does `next`, which comes after `code` in order, overlap it? */
static inline bool codes_overlap(const struct profile_code *code, const struct profile_code *next)
{
	return codes_are_of_one_space(code, next) && next->address - code->address < code->size;
}

/* Of the text of a filter: the same in every run and on every machine, as it is stored. */
uint64_t profile__filter_hash(const struct profile *p);

/* The name shown for a dso: never empty. The kernel is "[kernel.kallsyms]", as in other tools. */
const char *dso_display_name(const struct profile *p, struct dso_id id);
/* Is its path one of a file? Code that a JIT compiler made is in none, that of "app.py" is. */
bool dso_has_path(const struct profile_dso *dso);

/*
 * The name of an address for which there is no symbol: "[libfoo.so]", "[kernel]", "0x7f12" (JIT),
 * "[unknown]". Returns buffer.
 */
const char *unnamed_location(char *buffer, size_t size, enum dso_kind kind, const char *dso_name,
			     uint64_t address);
#define UNNAMED_LOCATION_SIZE (EVENT_PATH_MAX + 3)

/* The invariants of a finished profile; exporters rely on all of them and do not check. */

#endif
