/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof check: what this kernel and these privileges allow, what each lack costs, and the remedy.
 * With -p: what of a process can be unwound and named.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sysprof/event.h>

#include "base/clocks.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/record_options.h"
#include "cli/summary.h"
#include "formats/out/describe.h"
#include "live/capture/features.h"
#include "live/capture/tick_source.h"
#include "session/process_survey.h"
#include "session/session.h"

static const char *level_name(enum feature_level level)
{
	switch (level) {
	case FEATURE_REQUIRED:
		return "required";
	case FEATURE_WANTED:
		return "wanted";
	case FEATURE_INFO:
		return "info";
	}
	return "";
}

/* ---- how stacks end -------------------------------------------------------------------------- */

/* How user stacks end on this machine: the figures of a short recording of everything. */

#define CENSUS_NS 1000000000ull
#define CENSUS_HZ 499 /* enough samples of a machine that does little */

static int record_for_a_while(struct session *session, struct failure *failure)
{
	uint64_t end = monotonic_ns() + CENSUS_NS;
	int err = session__start(session, 0, -1, failure);

	while (!err && monotonic_ns() < end)
		err = session__step(session, end, failure);
	return err ? err : session__stop(session, failure);
}

static int count_ends(struct session *session, struct figures *census, struct failure *failure)
{
	const struct profile *profile;
	int err = session__finish(session, &profile, failure);

	if (!err)
		figures__init(census, profile);
	return err;
}

/* Takes about a second. 0 or negative errno. */
static int check_stacks(struct figures *census, struct failure *failure)
{
	const struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL,
							   .exclude_self = true},
						.hz = CENSUS_HZ,
						.user_stacks = true,
						.unwind_bytes = (size_t)UNWIND_MEMORY_DEFAULT << 20,
						.max_depth = DEPTH_DEFAULT,
					},
				.target_text = "-a",
				.command_line = "sysprof check",
			},
	};
	struct session *session;
	int err = session__open(&options, &session, failure);

	if (err)
		return err;
	err = record_for_a_while(session, failure) ?: count_ends(session, census, failure);
	session__free(session);
	return err;
}

/* ---- this machine ---------------------------------------------------------------------------- */

/* `census` is NULL if recording is impossible. */
static void json_stacks(const struct figures *census, struct json_writer *w)
{
	json_key_object(w, "stacks");
	if (census) {
		json_key_uint(w, "samples", census->value[FIGURE_SAMPLES]);
		json_key(w, "complete");
		json_fixed(w,
			   census->value[FIGURE_SAMPLES] ? census->share[FIGURE_COMPLETE_SHARE] : 0,
			   4);
		for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
			json_key_uint(w, figure_table[id].key, census->value[id]);
	}
	json_end_object(w);
}

static int print_json(const struct features *features, const struct figures *census)
{
	struct json_writer w;
	size_t count;
	const struct feature *list = features__list(features, &count);

	json_writer__init(&w, stdout);
	json_begin_object(&w);
	json_key_bool(&w, "can_record", features__can_record(features));
	json_key_array(&w, "features");
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&w);
		json_key_string(&w, "group", list[i].group);
		json_key_string(&w, "name", list[i].name);
		json_key_string(&w, "level", level_name(list[i].level));
		json_key_bool(&w, "available", list[i].available);
		json_key_string(&w, "detail", list[i].detail);
		json_key_string(&w, "cost", list[i].available ? "" : list[i].cost);
		json_key_string(&w, "remedy", list[i].available ? "" : list[i].remedy);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_stacks(census, &w);
	json_end_object(&w);
	fputc('\n', stdout);
	return json_writer__finish(&w);
}

static void print_feature(const struct feature *f)
{
	print_line(f->available			  ? "ok"
		   : f->level == FEATURE_REQUIRED ? "MISSING"
						  : "no",
		   f->name, f->detail);
	if (f->available)
		return;
	if (*f->cost)
		printf("  %-8s   costs: %s\n", "", f->cost);
	print_remedy(f->remedy);
}

static void print_stacks(const struct figures *census)
{
	uint64_t samples = census->value[FIGURE_SAMPLES];

	printf("\nuser stacks of the whole system during one second\n");
	if (!samples) {
		printf("  nothing ran\n");
		return;
	}
	printf("  complete %.1f %% of %llu samples\n", 100 * census->share[FIGURE_COMPLETE_SHARE],
	       (unsigned long long)samples);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
		if (figures__is_loss(census, id))
			printf("  cut      %.1f %%: %s\n", 100.0 * census->value[id] / samples,
			       figure_table[id].text);
}

static int print_text(const struct features *features, const struct figures *census)
{
	size_t count;
	const struct feature *list = features__list(features, &count);
	const char *group = "";

	for (size_t i = 0; i < count; i++) {
		if (strcmp(group, list[i].group)) {
			group = list[i].group;
			printf("%s%s\n", i ? "\n" : "", group);
		}
		print_feature(&list[i]);
	}
	if (census)
		print_stacks(census);
	printf("\n%s\n", features__can_record(features)
				 ? "sysprof can record here"
				 : "sysprof cannot record here: see MISSING above");
	return 0;
}

/* ---- one process, as text -------------------------------------------------------------------- */

static const char *const map_kinds[JIT_FILE_KIND_COUNT] = {
	[JIT_FILE_MAP] = "perf map",
	[JIT_FILE_DUMP] = "jitdump",
};

/* What a possible recording of it would lack; NULL: nothing. */
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
	print_line(text ? "no" : "ok", "recording", text ? text : "possible");
}

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
		print_line(r->mark != SURVEY_BAD ? "ok" : "no", name, r->text);
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
						     : jit_file_states[map->state].text;
}

static void print_maps(const struct process_survey *s)
{
	struct shown path;

	for (size_t i = 0; i < s->maps.count; i++) {
		const struct surveyed_map *map = &s->maps.data[i];

		print_line(is_followed(map) ? "ok" : "no", map_kinds[map->kind], map_text(map));
		if (map->path)
			printf("  %-8s   %s\n", "", show(&path, map->path));
	}
}

static const char *const cfi_texts[] = {
	[SURVEY_CFI_NONE] = "no unwind information: callers are inferred from the code",
	[SURVEY_CFI_EH_FRAME] = "CFI",
	[SURVEY_CFI_DEBUG_FRAME] = "CFI in .debug_frame",
	[SURVEY_CFI_GO] = "Go's function table",
	[SURVEY_CFI_LITTLE] = "CFI for little of the code: other callers are inferred from it",
};

static const char *const symbol_texts[] = {"no symbols", "symbols",
					   "exported symbols only (stripped)"};

static const char *const debug_texts[] = {
	[SURVEY_DEBUG_NONE] = "no debug information",
	[SURVEY_DEBUG_INSIDE] = "debug information",
	[SURVEY_DEBUG_SEPARATE] = "debug information in a separate file",
	[SURVEY_DEBUG_ZSTD] = "debug information compressed with zstd (elfutils 0.189 or newer; "
			      "for others: objcopy --decompress-debug-sections FILE)",
};

static bool is_sound(const struct survey_file *file)
{
	return file->cfi <= SURVEY_CFI_LITTLE && file->symbols < 3 &&
	       file->debug <= SURVEY_DEBUG_ZSTD;
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

/* `stops`: why it cannot be recorded at all; empty: it can. */
static void print_process(const struct process_survey *s, const struct failure *stops)
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

/* ---- one process, as JSON -------------------------------------------------------------------- */

static void json_runtimes(const struct process_survey *s, struct json_writer *w)
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

static void json_maps(const struct process_survey *s, struct json_writer *w)
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

static void json_files(const struct process_survey *s, struct json_writer *w)
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

/* The member "process". */
static void json_process(const struct process_survey *s, const struct failure *stops,
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
	json_runtimes(s, w);
	json_maps(s, w);
	json_files(s, w);
	json_end_object(w);
}

/* ---- looking at a process -------------------------------------------------------------------- */

/* A required feature that is missing prevents every recording. */
static void see_privileges(struct failure *stops)
{
	struct features *features;
	size_t count;
	const struct feature *list;

	if (features__probe(&features))
		return;
	list = features__list(features, &count);
	for (size_t i = 0; i < count; i++) {
		if (list[i].available || list[i].level != FEATURE_REQUIRED)
			continue;
		fail(stops, -EPERM, "cannot record here: %s is missing: %s", list[i].name,
		     list[i].detail);
		fail_remedy(stops, -EPERM, "sysprof check (lists what is missing, with remedies)");
		break;
	}
	features__free(features);
}

static int print_survey(const struct process_survey *survey, const struct failure *stops, bool json)
{
	struct json_writer w;

	if (!json) {
		print_process(survey, stops);
		return 0;
	}
	json_writer__init(&w, stdout);
	json_begin_object(&w);
	json_process(survey, stops, &w);
	json_end_object(&w);
	fputc('\n', stdout);
	return json_writer__finish(&w);
}

static int check_process(pid_t pid, bool json)
{
	struct process_survey survey;
	struct failure stops = {};
	int err;

	/* first: it forks, and must have one thread */
	process_survey__run(pid, &survey, &stops);
	if (!*stops.what)
		see_privileges(&stops);
	err = print_ended(print_survey(&survey, &stops, json));
	process_survey__fini(&survey);
	return err || *stops.what ? EXIT_FAILED : EXIT_DONE;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct listing {
	struct json_writer *json; /* NULL: text */
	const char *kind;	  /* of the last line */
};

static int print_event(void *context, const struct listed_event *event)
{
	struct listing *l = context;
	struct shown name;

	if (l->json) {
		json_begin_object(l->json);
		json_key_string(l->json, "kind", event->kind);
		json_key_string(l->json, "name", event->name);
		json_key_bool(l->json, "available", event->available);
		json_key_string(l->json, "detail", event->detail);
		json_end_object(l->json);
		return 0;
	}
	if (strcmp(l->kind, event->kind))
		printf("%s%s\n", *l->kind ? "\n" : "", event->kind);
	l->kind = event->kind;
	print_line(event->available ? "ok" : "no", show(&name, event->name), event->detail);
	return 0;
}

/* What -e takes here: each event was opened, and closed again. */
static int check_events(bool json)
{
	struct json_writer w;
	struct listing listing = {.json = json ? &w : NULL, .kind = ""};
	int err;

	if (json) {
		json_writer__init(&w, stdout);
		json_begin_object(&w);
		json_key_array(&w, "events");
	}
	err = tick_sources__list(print_event, &listing);
	if (json) {
		json_end_array(&w);
		json_end_object(&w);
		err = err ?: json_writer__finish(&w);
		fputc('\n', stdout);
	}
	return print_ended(err) ? EXIT_FAILED : EXIT_DONE;
}

struct arguments {
	unsigned int pid; /* 0: the system */
	bool json, events;
};

static const struct cli_option rows[] = {
	{"pid", 'p', .has_value = true, .take = option_number,
	 .field = offsetof(struct arguments, pid), .min = 1, .max = PID_LIMIT,
	 .expected = "one process id"},
	{"events", .take = option_set, .field = offsetof(struct arguments, events)},
	{"json", .take = option_set, .field = offsetof(struct arguments, json)},
	{},
};

static int check_system(bool json)
{
	struct features *features;
	struct figures census;
	struct failure failure = {};
	bool can_record, counted;
	int err = features__probe(&features);

	if (err) {
		log_print(LOG_ERROR, "cannot probe the system: %s", strerror(-err));
		return EXIT_FAILED;
	}
	can_record = features__can_record(features);
	counted = can_record && !check_stacks(&census, &failure);
	err = print_ended(json ? print_json(features, counted ? &census : NULL)
			       : print_text(features, counted ? &census : NULL));
	features__free(features);
	if (can_record && !counted)
		print_failure(&failure);
	return err || !counted ? EXIT_FAILED : EXIT_DONE;
}

static int run_check(int argc, char **argv)
{
	struct arguments arguments = {};
	int status = options__parse(&cmd_check, &arguments, argc, argv);

	if (status)
		return status;
	if (optind < argc)
		return usage_error(&cmd_check, "unexpected argument '%s'", argv[optind]);
	if (arguments.events && arguments.pid)
		return usage_error(&cmd_check, "-p and --events are mutually exclusive");
	if (arguments.events)
		return check_events(arguments.json);
	return arguments.pid ? check_process((pid_t)arguments.pid, arguments.json)
			     : check_system(arguments.json);
}

const struct command cmd_check = {
	.name = "check",
	.arguments = "[-p PID | --events] [--json]",
	.summary = "show what this kernel and these privileges allow, and how user stacks end",
	.help = "  sudo sysprof check\n"
		"  sudo sysprof check -p 1234\n"
		"\n"
		"  -p, --pid PID   show what can be unwound and named in a process, and how to improve it\n"
		"      --events    list the events that -e of record takes on this machine\n"
		"      --json      print JSON\n"
		"\n"
		"With -p nothing is recorded, and the process is not stopped. Exits with status 1 if recording is impossible.\n",
	.run = run_check,
	.options = rows,
};
