/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/check_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/utf8.h"

static const char *const map_kinds[JIT_FILE_KIND_COUNT] = {
	[JIT_FILE_MAP] = "perf map",
	[JIT_FILE_DUMP] = "jitdump",
};

static const char *const map_states[JIT_FILE_STATE_COUNT] = {
#define X(id, followed, text) [JIT_FILE_STATE_##id] = text,
	JIT_FILE_STATES(X)
#undef X
};

/* Of the program or of the runtimes that the host has: names may hold anything. */
struct shown {
	char text[4 * PATH_MAX];
};

static const char *show(struct shown *shown, const char *text)
{
	return utf8_sanitize(shown->text, sizeof(shown->text), text);
}

static void print_line(bool good, const char *name, const char *text)
{
	printf("  %-8s %-24s %s\n", good ? "ok" : "no", name, text);
}

static void print_remedy(const char *remedy)
{
	if (remedy && *remedy)
		printf("  %-8s   try: %s\n", "", remedy);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* What a recording of it would lack, although it can be made; NULL: nothing. */
static const char *hindrance(const struct process_survey *s)
{
	if (s->narrow)
		return "32-bit program: its stacks have one frame";
	if (s->state == 'T' || s->state == 't')
		return "stopped: no samples until it continues";
	if (!s->maps_read)
		return "its mappings cannot be read: its stacks have only addresses";
	return NULL;
}

static void print_state(const struct process_survey *s, const struct failure *stops)
{
	const char *text = hindrance(s);
	struct shown name;

	printf("process %d %s", s->pid, show(&name, s->comm));
	printf("%s%s\n", s->program ? ": " : "", s->program ? show(&name, s->program) : "");
	if (*stops->what) {
		printf("  %-8s %s\n", "MISSING", stops->what);
		print_remedy(stops->remedy);
		return;
	}
	print_line(!text, "recording", text ? text : "possible");
}

/* ---- runtimes -------------------------------------------------------------------------------- */

static const char *mark_name(enum survey_mark mark)
{
	return mark == SURVEY_GOOD ? "named" : mark == SURVEY_PARTLY ? "partly" : "unnamed";
}

static void print_runtimes(const struct process_survey *s)
{
	printf("\nruntimes\n");
	if (!s->runtimes.count)
		printf("  none recognized%s\n", s->made ? ", but the process has JIT code" : "");
	for (size_t i = 0; i < s->runtimes.count; i++) {
		const struct surveyed_runtime *r = &s->runtimes.data[i];
		char name[80];

		snprintf(name, sizeof(name), "%s%s%s", r->name, *r->version ? " " : "", r->version);
		print_line(r->mark != SURVEY_BAD, name, r->text);
		print_remedy(r->remedy);
	}
}

static bool is_followed(const struct surveyed_map *map)
{
	return jit_file_state_is_followed(map->state);
}

static const char *map_text(const struct surveyed_map *map)
{
	if (map->state == JIT_FILE_STATE_NONE)
		return "does not answer";
	return map->state == JIT_FILE_STATE_FOLLOWED ? "followed as it grows"
						     : map_states[map->state];
}

static void print_maps(const struct process_survey *s)
{
	struct shown path;

	for (size_t i = 0; i < s->maps.count; i++) {
		const struct surveyed_map *map = &s->maps.data[i];

		print_line(is_followed(map), map_kinds[map->kind], map_text(map));
		if (map->path)
			printf("  %-8s   %s\n", "", show(&path, map->path));
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const cfi_texts[] = {
	[SURVEY_CFI_NONE] = "no unwind information: callers are inferred from the code",
	[SURVEY_CFI_EH_FRAME] = "CFI",
	[SURVEY_CFI_DEBUG_FRAME] = "CFI in .debug_frame",
	[SURVEY_CFI_GO] = "Go's function table",
};

static const char *const symbol_texts[] = {"no symbols", "symbols",
					   "exported symbols only (stripped)"};

static const char *const debug_texts[] = {
	[SURVEY_DEBUG_NONE] = "no debug information",
	[SURVEY_DEBUG_INSIDE] = "debug information",
	[SURVEY_DEBUG_SEPARATE] = "debug information in a separate file",
};

static bool is_sound(const struct survey_file *file)
{
	return file->cfi <= SURVEY_CFI_GO && file->symbols < 3 &&
	       file->debug <= SURVEY_DEBUG_SEPARATE;
}

/* Why the file cannot be described; NULL: it can. */
static const char *file_trouble(const struct surveyed_file *file)
{
	if (!file->answered || !is_sound(&file->file))
		return "does not answer: its frames have no names";
	if (file->file.error == -ENOEXEC)
		return "not an ELF file";
	return file->file.error ? strerror(-file->file.error) : NULL;
}

static void print_file(const struct surveyed_file *file)
{
	const char *trouble = file_trouble(file);
	const struct survey_file *f = &file->file;
	struct shown path;

	printf("  %-8s %s\n", !trouble && f->cfi != SURVEY_CFI_NONE ? "ok" : "no",
	       show(&path, file->path));
	if (trouble)
		printf("  %-8s   %s\n", "", trouble);
	else
		printf("  %-8s   %s, %s, %s\n", "", cfi_texts[f->cfi], symbol_texts[f->symbols],
		       debug_texts[f->debug]);
}

void print_process(const struct process_survey *s, const struct failure *stops)
{
	print_state(s, stops);
	if (*stops->what && !s->files.count)
		return;
	print_runtimes(s);
	print_maps(s);
	printf("\nexecutable files\n");
	for (size_t i = 0; i < s->files.count; i++)
		print_file(&s->files.data[i]);
	if (s->left_out)
		printf("  and %zu more mappings\n", s->left_out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_runtimes(const struct process_survey *s, struct json_writer *w)
{
	json_key_array(w, "runtimes");
	for (size_t i = 0; i < s->runtimes.count; i++) {
		const struct surveyed_runtime *r = &s->runtimes.data[i];

		json_begin_object(w);
		json_key_string(w, "name", r->name);
		json_key_string(w, "version", r->version);
		json_key_string(w, "state", mark_name(r->mark));
		json_key_string(w, "detail", r->text);
		json_key_string(w, "remedy", r->remedy ? r->remedy : "");
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_maps(const struct process_survey *s, struct json_writer *w)
{
	json_key_array(w, "maps");
	for (size_t i = 0; i < s->maps.count; i++) {
		const struct surveyed_map *map = &s->maps.data[i];

		json_begin_object(w);
		json_key_string(w, "kind", map_kinds[map->kind]);
		json_key_string(w, "path", map->path ? map->path : "");
		json_key_bool(w, "followed", is_followed(map));
		json_key_string(w, "detail", map_text(map));
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_files(const struct process_survey *s, struct json_writer *w)
{
	json_key_array(w, "files");
	for (size_t i = 0; i < s->files.count; i++) {
		const struct surveyed_file *file = &s->files.data[i];
		const char *trouble = file_trouble(file);

		json_begin_object(w);
		json_key_string(w, "path", file->path);
		json_key_string(w, "error", trouble ? trouble : "");
		json_key_string(w, "unwind", trouble ? "" : cfi_texts[file->file.cfi]);
		json_key_string(w, "symbols", trouble ? "" : symbol_texts[file->file.symbols]);
		json_key_string(w, "debug", trouble ? "" : debug_texts[file->file.debug]);
		json_end_object(w);
	}
	json_end_array(w);
	json_key_uint(w, "files_left_out", s->left_out);
}

void write_process(const struct process_survey *s, const struct failure *stops,
		   struct json_writer *w)
{
	const char *lacks = hindrance(s);

	json_key_object(w, "process");
	json_key_int(w, "pid", s->pid);
	json_key_string(w, "name", s->comm);
	json_key_string(w, "program", s->program ? s->program : "");
	json_key_bool(w, "can_record", !*stops->what);
	json_key_string(w, "detail", *stops->what ? stops->what : lacks ? lacks : "");
	json_key_string(w, "remedy", stops->remedy);
	json_key_uint(w, "made_code", s->made);
	write_runtimes(s, w);
	write_maps(s, w);
	write_files(s, w);
	json_end_object(w);
}
