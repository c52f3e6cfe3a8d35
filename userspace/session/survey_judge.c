/* SPDX-License-Identifier: BSD-2-Clause */
/* What the findings of a survey mean for the runtimes of the process: one line for each. */
#include "session/process_survey.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mapping_path.h"
#include "jit/jit_runtime.h"
#include "runtimes/cpython_layout.h"
#include "runtimes/hotspot_layout.h"
#include "runtimes/v8_layout.h"

#define NAMED_BY_MEMORY "functions, files and lines are read from its memory"
#define BROKEN_JAVA	"start it with -XX:+PreserveFramePointer, and record with --jvm-perfmap"

static void __attribute__((format(printf, 3, 4)))
judge(struct surveyed_runtime *runtime, enum survey_mark mark, const char *format, ...)
{
	va_list args;

	runtime->mark = mark;
	va_start(args, format);
	vsnprintf(runtime->text, sizeof(runtime->text), format, args);
	va_end(args);
}

/* ---- the runtimes that are read -------------------------------------------------------------- */

static void judge_v8(const struct process_survey *s, struct surveyed_runtime *runtime,
		     const struct jit_runtime *known)
{
	const struct survey_memory *memory = &s->memory;

	if (!memory->has_v8) {
		judge(runtime, SURVEY_BAD, "%s: %s", known->lacks,
		      v8_verdict__text(memory->v8_verdict));
		runtime->remedy = known->remedy;
		return;
	}
	if (memory->v8_version[0])
		snprintf(runtime->version, sizeof(runtime->version), "V8 %u.%u.%u",
			 memory->v8_version[0], memory->v8_version[1], memory->v8_version[2]);
	judge(runtime, memory->v8_verdict == V8_NAMES_ONLY ? SURVEY_PARTLY : SURVEY_GOOD,
	      "functions are read from its memory: %s", v8_verdict__text(memory->v8_verdict));
}

static void judge_python(const struct process_survey *s, struct surveyed_runtime *runtime,
			 const struct jit_runtime *known)
{
	const struct survey_memory *memory = &s->memory;
	uint32_t version = memory->python_version;

	if (version)
		snprintf(runtime->version, sizeof(runtime->version), "%u.%u.%u", version >> 24,
			 version >> 16 & 0xff, version >> 8 & 0xff);
	if (memory->has_python) {
		judge(runtime, SURVEY_GOOD, NAMED_BY_MEMORY);
		return;
	}
	judge(runtime, SURVEY_BAD, "%s: %s", known->lacks,
	      cpython_verdict__text(memory->python_verdict));
	/* it is only to be asked again */
	runtime->remedy = memory->python_verdict == CPYTHON_NOT_STARTED ? NULL : known->remedy;
}

/* `library`: libjvm.so; NULL: it did not answer. */
static void judge_java(const struct process_survey *s, struct surveyed_runtime *runtime,
		       const struct jit_runtime *known, const struct survey_file *library)
{
	if (library)
		snprintf(runtime->version, sizeof(runtime->version), "%s", library->version);
	if (s->memory.has_methods) {
		judge(runtime, SURVEY_GOOD,
		      "whole stacks, by its code heaps; methods, files and lines are read from its memory");
		return;
	}
	runtime->remedy = known->remedy;
	if (s->memory.has_hotspot) {
		judge(runtime, SURVEY_PARTLY,
		      "whole stacks, by its code heaps; methods have names with record --jvm-perfmap");
		return;
	}
	if (s->memory.frame_pointers != HOTSPOT_FLAG_ON) {
		judge(runtime, SURVEY_BAD, "%s%s", known->lacks,
		      s->memory.frame_pointers == HOTSPOT_FLAG_UNKNOWN
			      ? " (whether it keeps frame pointers cannot be read)"
			      : "");
		runtime->remedy = BROKEN_JAVA;
		return;
	}
	judge(runtime, SURVEY_PARTLY, "whole stacks (-XX:+PreserveFramePointer); %s",
	      "methods have names with record --jvm-perfmap");
}

/* ---- each of them ---------------------------------------------------------------------------- */

/* A map or dump that is read; one that has nothing in it names nothing. */
static const struct surveyed_map *followed_map(const struct process_survey *s)
{
	for (size_t i = 0; i < s->maps.count; i++)
		if (s->maps.data[i].state == JIT_FILE_STATE_FOLLOWED
			    ? s->maps.data[i].heard
			    : jit_file_state_is_followed(s->maps.data[i].state))
			return &s->maps.data[i];
	return NULL;
}

/* Who writes down its functions is not read; Java's map does not make its stacks whole. */
static void judge_map(struct surveyed_runtime *runtime, const struct surveyed_map *map)
{
	bool whole = map->state == JIT_FILE_STATE_FOLLOWED;

	if (!strcmp(runtime->name, "Java")) {
		if (runtime->mark != SURVEY_BAD && whole) {
			judge(runtime, SURVEY_GOOD, "whole stacks, methods named by its perf map");
			runtime->remedy = NULL;
		}
		return;
	}
	judge(runtime, whole ? SURVEY_GOOD : SURVEY_PARTLY, "its functions are named by its %s%s",
	      map->kind == JIT_FILE_MAP ? "perf map" : "jitdump",
	      whole ? "" : ", which is not read as a whole");
	runtime->remedy = NULL;
}

/* `file`: of which it was recognized; NULL: by its memory alone. */
static int add_runtime(struct process_survey *s, const struct jit_runtime *known,
		       const struct surveyed_file *file)
{
	const struct surveyed_map *map = followed_map(s);
	struct surveyed_runtime runtime = {.name = known->name};

	for (size_t i = 0; i < s->runtimes.count; i++)
		if (s->runtimes.data[i].name == known->name)
			return 0;
	if (known->memory != JIT_MEMORY_NONE && !s->memory_answered)
		judge(&runtime, SURVEY_BAD, "its files or its memory do not answer");
	else if (known->memory == JIT_MEMORY_V8)
		judge_v8(s, &runtime, known);
	else if (known->memory == JIT_MEMORY_PYTHON)
		judge_python(s, &runtime, known);
	else if (known->memory == JIT_MEMORY_HOTSPOT)
		judge_java(s, &runtime, known, file && file->answered ? &file->file : NULL);
	else {
		judge(&runtime, SURVEY_BAD, "%s", known->lacks);
		runtime.remedy = known->remedy;
	}
	if (map)
		judge_map(&runtime, map);
	return vec_push(&s->runtimes, runtime);
}

static bool has(const struct process_survey *s, enum jit_runtime_memory memory)
{
	return s->memory_answered &&
	       (memory == JIT_MEMORY_V8 ? s->memory.has_v8
		: memory == JIT_MEMORY_PYTHON
			? s->memory.has_python || s->memory.python_verdict != CPYTHON_ABSENT
			: s->memory.has_hotspot);
}

/* By the name of the file without its directories, as summaries do. */
static const struct jit_runtime *runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)mapping_path_length(slash + 1), slash + 1);
	return jit_runtime_of_file(name);
}

int process_survey__judge(struct process_survey *s)
{
	bool seen[JIT_MEMORY_COUNT] = {};
	int err = 0;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		const struct jit_runtime *known = runtime_of(s->files.data[i].path);

		if (!known)
			continue;
		/* a file of that name that has no interpreter in it, nor has any other */
		if (known->memory == JIT_MEMORY_PYTHON && s->memory_answered &&
		    !has(s, JIT_MEMORY_PYTHON))
			continue;
		seen[known->memory] = true;
		err = add_runtime(s, known, &s->files.data[i]);
	}
	for (enum jit_runtime_memory m = JIT_MEMORY_V8; m < JIT_MEMORY_COUNT && !err; m++)
		if (!seen[m] && has(s, m))
			err = add_runtime(s, jit_runtime_by_memory(m), NULL);
	return err;
}
