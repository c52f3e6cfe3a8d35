/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof check: what this kernel and these privileges allow, what each lack costs, and the remedy. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "capture/features.h"
#include "cli/check_stacks.h"
#include "cli/commands.h"
#include "cli/summary.h"
#include "export/facts.h"

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

/* `census` is NULL where recording is impossible. */
static void json_stacks(const struct stack_census *census, struct json_writer *w)
{
	json_key(w, "stacks");
	json_begin_object(w);
	if (census) {
		json_key_uint(w, "samples", census->samples);
		json_key(w, "complete");
		json_fixed(w, census->samples ? census->complete : 0, 4);
		for (unsigned int end = 0; end < STACK_END_COUNT; end++)
			json_key_uint(w, stack_end_name(end), census->ends[end]);
	}
	json_end_object(w);
}

static int print_json(const struct features *features, const struct stack_census *census)
{
	struct json_writer w;
	size_t count;
	const struct feature *list = features__list(features, &count);

	json_writer__init(&w, stdout);
	json_begin_object(&w);
	json_key_bool(&w, "can_record", features__can_record(features));
	json_key(&w, "features");
	json_begin_array(&w);
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
	const char *mark = f->available ? "ok" : f->level == FEATURE_REQUIRED ? "MISSING" : "no";

	printf("  %-8s %-24s %s\n", mark, f->name, f->detail);
	if (f->available)
		return;
	if (*f->cost)
		printf("  %-8s   costs: %s\n", "", f->cost);
	if (*f->remedy)
		printf("  %-8s   try: %s\n", "", f->remedy);
}

static void print_stacks(const struct stack_census *census)
{
	printf("\nuser stacks of everything that ran during one second\n");
	if (!census->samples) {
		printf("  nothing ran\n");
		return;
	}
	printf("  complete %.1f %% of %llu samples\n", 100 * census->complete,
	       (unsigned long long)census->samples);
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		if (census->ends[end] && !stack_end_is_complete(end))
			printf("  cut      %.1f %%: %s\n",
			       100.0 * census->ends[end] / census->samples, stack_end_text(end));
}

static int print_text(const struct features *features, const struct stack_census *census)
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

static int run_check(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	struct features *features;
	struct stack_census census;
	struct failure failure = {};
	bool json = false, can_record, counted;
	int option, err;

	optind = 1;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option != 'j')
			return usage_error(&cmd_check, "unknown option '%s'", argv[optind - 1]);
		json = true;
	}
	if (optind < argc)
		return usage_error(&cmd_check, "unexpected argument '%s'", argv[optind]);
	err = features__probe(&features);
	if (err) {
		log_print(LOG_ERROR, "cannot probe the system: %s", strerror(-err));
		return EXIT_FAILED;
	}
	can_record = features__can_record(features);
	counted = can_record && !check_stacks(&census, &failure);
	err = json ? print_json(features, counted ? &census : NULL)
		   : print_text(features, counted ? &census : NULL);
	features__free(features);
	errno = 0;
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	if (err)
		log_print(LOG_ERROR, "cannot print: %s", strerror(-err));
	if (can_record && !counted)
		print_failure(&failure);
	return err || !counted ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_check = {
	.name = "check",
	.arguments = "[--json]",
	.summary = "show what this kernel and these privileges allow, and how user stacks end",
	.help = "  sudo sysprof check\n"
		"\n"
		"      --json   print JSON\n"
		"\n"
		"Exits with status 1 if recording is impossible.\n",
	.run = run_check,
};
