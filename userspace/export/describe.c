/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/outside_books.h"

#define YEAR_2000 946684800000000000ull /* ns since the epoch */

bool export_has_realtime(const struct profile *p)
{
	return p->start_realtime >= YEAR_2000;
}

void describe_clock(char *text, size_t size, const struct profile *p)
{
	if (p->tsc_khz)
		snprintf(text, size, "TSC at %" PRIu64 ".%03" PRIu64 " MHz", p->tsc_khz / 1000,
			 p->tsc_khz % 1000);
	else
		snprintf(text, size, "CLOCK_MONOTONIC");
}

void add_ticks(struct text_line *line, const uint64_t lines[BOOK_COUNT], bool all)
{
	for (unsigned int i = 0; i < BOOK_COUNT; i++)
		if (all || !i || lines[i])
			add_text(line, "%s%" PRIu64 " %s", i ? " + " : "", lines[i],
				 figure_table[FIGURE_BOOKS + i].key);
}

/* ---- JIT code --------------------------------------------------------------------------------- */

static const struct {
	const char *name, *text;
	bool followed;
} jit_file_states[] = {
#define X(id, followed, text) [JIT_FILE_STATE_##id] = {#id, text, followed},
	JIT_FILE_STATES(X)
#undef X
};

static const char *plural_ending(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void add_file(struct text_line *line, const struct profile *p, const char *what,
		     const struct profile_jit_file *file)
{
	if (!file->path.v)
		return;
	add_text(line, "; %s %s: ", what, profile__string(p, file->path));
	if (!jit_file_states[file->state].followed) {
		add_text(line, "not read: %s", jit_file_states[file->state].text);
		return;
	}
	add_text(line, "%" PRIu64 " entr%s", file->entries, file->entries == 1 ? "y" : "ies");
	if (file->bad_lines)
		add_text(line, ", %" PRIu64 " bad", file->bad_lines);
	if (file->state != JIT_FILE_STATE_FOLLOWED)
		add_text(line, ", %s", jit_file_states[file->state].text);
}

/* The process may have names in a buffer that it has not written to its jitdump yet. */
static bool may_be_unwritten(const struct profile *p, const struct profile_jit *jit)
{
	return jit->dump.path.v && jit_file_states[jit->dump.state].followed &&
	       !p->processes[jit->process.v].end;
}

/*
 * Its functions have names without a map. The rest are stubs of its compilers, functions that have just been entered,
 * and samples from before its tables were built: they are counted, and there is advice if they are many.
 */
static bool is_read(const struct profile_jit *jit)
{
	return jit->read && jit->unnamed <= jit->read / 4;
}

void describe_jit(char *text, size_t size, const struct profile *p, const struct profile_jit *jit)
{
	const struct profile_process *process = &p->processes[jit->process.v];
	struct text_line line = {text, size, 0};

	*text = 0;
	if (jit->refusal.v && !jit->samples) {
		add_text(&line, "%s (pid %" PRIu32 ", %s): its functions have no names: %s: %s",
			 profile__string(p, process->name), process->pid,
			 profile__string(p, jit->runtime), profile__string(p, jit->refusal),
			 profile__string(p, jit->remedy));
		return;
	}
	add_text(&line, "%s (pid %" PRIu32 "%s%s): ", profile__string(p, process->name),
		 process->pid, jit->runtime.v ? ", " : "", profile__string(p, jit->runtime));
	if (jit->read && !jit->samples && !jit->map.path.v && !jit->dump.path.v) {
		add_text(&line, "all functions read from its memory, in %" PRIu64 " sample%s",
			 jit->read, plural_ending(jit->read));
		return;
	}
	add_text(&line, "%" PRIu64 " sample%s", jit->samples, plural_ending(jit->samples));
	if (jit->ambiguous)
		add_text(&line, ", %" PRIu64 " ambiguous", jit->ambiguous);
	if (jit->unnamed)
		add_text(&line, ", %" PRIu64 " %s", jit->unnamed,
			 may_be_unwritten(p, jit) ? "in JIT code not yet written"
						  : "without a name");
	add_file(&line, p, "map", &jit->map);
	add_file(&line, p, "jitdump", &jit->dump);
	if (jit->read)
		add_text(&line, "; functions read from its memory in %" PRIu64 " sample%s",
			 jit->read, plural_ending(jit->read));
	if (!jit->map.path.v && !jit->dump.path.v && !is_read(jit))
		add_text(&line, "; no perf map");
	if (jit->unnamed && jit->remedy.v && !is_read(jit) &&
	    !(jit->map.path.v && jit_file_states[jit->map.state].followed))
		add_text(&line, ": %s", profile__string(p, jit->remedy));
}

void describe_runtime(char *text, size_t size, const struct profile_runtime *runtime)
{
	uint64_t named = runtime->frames - runtime->stale - runtime->unknown;
	struct text_line line = {text, size, 0};

	*text = 0;
	add_text(&line, "%" PRIu64 " of %" PRIu64 " frames named from memory", named,
		 runtime->frames);
	if (runtime->ambiguous)
		add_text(&line, ", %" PRIu64 " of them ambiguous", runtime->ambiguous);
	if (runtime->stale)
		add_text(&line, ", %" PRIu64 " of functions that were gone", runtime->stale);
	if (runtime->unknown)
		add_text(&line, ", %" PRIu64 " not read", runtime->unknown);
}

void write_runtimes(const struct profile *p, struct json_writer *w)
{
	if (!p->runtime_count)
		return;
	json_key_array(w, "runtimes");
	for (size_t i = 0; i < p->runtime_count; i++) {
		const struct profile_runtime *runtime = &p->runtimes[i];

		json_begin_object(w);
		json_key_string(w, "name", profile__string(p, runtime->name));
		json_key_uint(w, "frames", runtime->frames);
		json_key_uint(w, "ambiguous", runtime->ambiguous);
		json_key_uint(w, "stale", runtime->stale);
		json_key_uint(w, "unknown", runtime->unknown);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_jit_file(const char *key, const struct profile *p,
			   const struct profile_jit_file *file, struct json_writer *w)
{
	json_key(w, key);
	if (!file->path.v) {
		json_null(w);
		return;
	}
	json_begin_object(w);
	json_key_string(w, "path", profile__string(p, file->path));
	json_key_string(w, "state", jit_file_states[file->state].name);
	json_key_uint(w, "entries", file->entries);
	json_key_uint(w, "bad", file->bad_lines);
	json_key_uint(w, "torn", file->torn);
	json_end_object(w);
}

static size_t bytes_of_jit(const struct profile *p, const struct profile_jit *jit)
{
	return strlen(profile__string(p, jit->map.path)) +
	       strlen(profile__string(p, jit->dump.path));
}

/* Many processes may have one file, whose path is long, and the list is in the file of each thread. */
size_t described_jits(const struct profile *p)
{
	size_t bytes = 0, count = 0;

	for (; count < p->jit_count && count < JITS_MAX && bytes <= JITS_PATHS_MAX; count++)
		bytes += bytes_of_jit(p, &p->jits[count]);
	return count;
}

void write_jits(const struct profile *p, struct json_writer *w)
{
	size_t count = described_jits(p);

	if (count < p->jit_count)
		json_key_uint(w, "jit_left_out", p->jit_count - count);
	json_key_array(w, "jit");
	for (size_t i = 0; i < count; i++) {
		const struct profile_jit *jit = &p->jits[i];
		const struct profile_process *process = &p->processes[jit->process.v];

		json_begin_object(w);
		json_key_uint(w, "pid", process->pid);
		json_key_string(w, "process", profile__string(p, process->name));
		json_key_string(w, "runtime", profile__string(p, jit->runtime));
		json_key_string(w, "remedy", profile__string(p, jit->remedy));
		json_key_uint(w, "samples", jit->samples);
		json_key_uint(w, "unnamed", jit->unnamed);
		json_key_uint(w, "ambiguous", jit->ambiguous);
		if (jit->read)
			json_key_uint(w, "read", jit->read);
		if (jit->refusal.v)
			json_key_string(w, "refusal", profile__string(p, jit->refusal));
		write_jit_file("map", p, &jit->map, w);
		write_jit_file("jitdump", p, &jit->dump, w);
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- the books of the outside ---------------------------------------------------------------- */

void describe_outside(char *text, size_t size, const struct profile_outside *row)
{
	const struct outside_row described = {
		.user = row->user, .thing = row->thing, .reason = row->reason, .count = row->count};

	outside_row__describe(text, size, &described);
}

static void write_outside_row(const struct profile *p, const struct profile_outside *row,
			      struct json_writer *w)
{
	char text[OUTSIDE_TEXT_SIZE];

	json_begin_object(w);
	if (row->user == OUTSIDE_USER_UNKNOWN)
		json_key_null(w, "user");
	else if (row->user == OUTSIDE_USER_OTHERS)
		json_key_string(w, "user", "others");
	else
		json_key_uint(w, "user", row->user);
	json_key_string(w, "what", outside_thing_name(row->thing));
	json_key_string(w, "reason", outside_reason_name(row->reason));
	json_key_uint(w, "count", row->count);
	json_key_string(w, "unit", outside_thing_unit(row->thing));
	json_key_bool(w, "waited", outside_reason_waits(row->reason));
	json_key(w, "since");
	json_ns_as_us(w, (int64_t)(row->since - p->start));
	describe_outside(text, sizeof(text), row);
	json_key_string(w, "text", text);
	json_end_object(w);
}

void write_outside(const struct profile *p, struct json_writer *w)
{
	if (!p->outside_count)
		return;
	json_key_array(w, "outside");
	for (size_t i = 0; i < p->outside_count; i++)
		write_outside_row(p, &p->outside[i], w);
	json_end_array(w);
}

static void parse_build_id(const char *digits, struct dso_build_id *build_id)
{
	size_t length = digits ? strlen(digits) : 0;
	unsigned int byte;

	if (length % 2 || length > sizeof(build_id->bytes) * 2 ||
	    strspn(digits ? digits : "", "0123456789abcdefABCDEF") != length)
		return;
	for (size_t i = 0; i < length / 2; i++) {
		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return;
		build_id->bytes[i] = byte;
	}
	build_id->size = length / 2;
}

void dso_build_id(const struct profile *p, struct dso_id id, struct dso_build_id *build_id)
{
	const struct profile_dso *dso = &p->dsos[id.v];

	*build_id = (struct dso_build_id){.size = dso->build_id_size};
	memcpy(build_id->bytes, dso->build_id, sizeof(build_id->bytes));
	if (dso->kind == DSO_KERNEL && !build_id->size)
		parse_build_id(profile__meta(p, META_KERNEL_BUILD_ID), build_id);
}

const char *dso_display_name(const struct profile *p, struct dso_id id)
{
	const struct profile_dso *dso = &p->dsos[id.v];
	const char *name = profile__string(p, dso->name);

	switch (dso->kind) {
	case DSO_KERNEL:
		return *name && strcmp(name, "[kernel]") ? name : "[kernel.kallsyms]";
	case DSO_JIT:
	case DSO_RUNTIME:
		return "[jit]";
	case DSO_VDSO:
		return *name ? name : "[vdso]";
	case DSO_FILE:
		return *name ? name : "[unknown]";
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return "[unknown]";
}
