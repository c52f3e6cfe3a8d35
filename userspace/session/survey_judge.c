/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges the runtimes of the process by the findings of a survey: one line for each. */
#include "session/process_survey.h"

#include <stdio.h>
#include <string.h>

#include "base/proc_parse.h"

/* A map or dump that is read; one that has nothing in it names nothing. */
static const struct surveyed_map *followed_map(const struct process_survey *s)
{
	for (size_t i = 0; i < s->maps.count; i++)
		if (s->maps.data[i].state == JIT_FILE_STATE_FOLLOWED
			    ? s->maps.data[i].was_read
			    : jit_file_state_is_followed(s->maps.data[i].state))
			return &s->maps.data[i];
	return NULL;
}

/* A process that writes down its functions is not read. */
static void judge_map(struct surveyed_runtime *runtime, const struct runtime *known,
		      const struct surveyed_map *map)
{
	bool whole = map->state == JIT_FILE_STATE_FOLLOWED;

	if (known->memory && known->memory->needs_walk) {
		if (runtime->mark != SURVEY_BAD && whole) {
			surveyed_runtime__judge(runtime, SURVEY_GOOD,
						"whole stacks, methods named by its perf map");
			runtime->remedy = NULL;
		}
		return;
	}
	surveyed_runtime__judge(runtime, whole ? SURVEY_GOOD : SURVEY_PARTLY,
				"its functions are named by its %s%s",
				map->kind == JIT_FILE_MAP ? "perf map" : "jitdump",
				whole ? "" : ", which is not read as a whole");
	runtime->remedy = NULL;
}

static const struct runtime_finding *finding_of(const struct process_survey *s,
						const struct runtime_memory *memory)
{
	unsigned int number = 0;

	while (runtime_memory(number) != memory)
		number++;
	return &s->found.of[number];
}

/* `file`: of which it was recognized; NULL: by its memory alone. */
static int add_runtime(struct process_survey *s, const struct runtime *known,
		       const struct surveyed_file *file)
{
	const struct surveyed_map *map = followed_map(s);
	struct surveyed_runtime runtime = {.name = known->name};

	for (size_t i = 0; i < s->runtimes.count; i++)
		if (s->runtimes.data[i].name == known->name)
			return 0;
	if (known->memory && !s->memory_answered) {
		surveyed_runtime__judge(&runtime, SURVEY_BAD,
					"its files or its memory do not answer");
	} else if (known->memory) {
		known->memory->judge(finding_of(s, known->memory), known,
				     file && file->answered ? file->file.version : "", &runtime);
	} else {
		surveyed_runtime__judge(&runtime, SURVEY_BAD, "%s", known->lacks);
		runtime.remedy = known->remedy;
	}
	if (map)
		judge_map(&runtime, known, map);
	return vec_push(&s->runtimes, runtime);
}

/* By the name of the file without its directories, as summaries do. */
static const struct runtime *runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)mapping_path_length(slash + 1), slash + 1);
	return runtime_of_file(name);
}

/* A file of that name that has no interpreter in it, nor has any other. */
static bool is_absent(const struct process_survey *s, const struct runtime *known)
{
	return known->memory && known->memory->is_absent_unless_read && s->memory_answered &&
	       !finding_of(s, known->memory)->is_seen;
}

int process_survey__judge(struct process_survey *s)
{
	bool seen[RUNTIME_MEMORIES_MAX] = {};
	const struct runtime_memory *memory;
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		const struct runtime *known = runtime_of(s->files.data[i].path);

		if (!known || is_absent(s, known))
			continue;
		if (known->memory)
			seen[finding_of(s, known->memory) - s->found.of] = true;
		err = add_runtime(s, known, &s->files.data[i]);
	}
	for (unsigned int i = 0; !err && s->memory_answered && (memory = runtime_memory(i)); i++)
		if (!seen[i] && s->found.of[i].is_seen)
			err = add_runtime(s, memory->home, NULL);
	return err;
}
