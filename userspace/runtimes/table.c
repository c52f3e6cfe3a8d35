/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtimes/runtime.h"

/*
 * All runtimes, by the names of their `struct runtime`. In a summary the first of several in a
 * process counts: LuaJIT is before Python, as it may be its module. Those whose memory is read are
 * defined in their folders.
 */
#define RUNTIMES(X)                                                                                \
	X(node)                                                                                    \
	X(java)                                                                                    \
	X(openj9)                                                                                  \
	X(luajit)                                                                                  \
	X(python)                                                                                  \
	X(dotnet)                                                                                  \
	X(erlang)                                                                                  \
	X(php)                                                                                     \
	X(ruby)                                                                                    \
	X(pypy)                                                                                    \
	X(wasmtime)                                                                                \
	X(iwasm)                                                                                   \
	X(deno)                                                                                    \
	X(chrome)                                                                                  \
	X(electron)                                                                                \
	X(julia)                                                                                   \
	X(mono)                                                                                    \
	X(qemu)                                                                                    \
	X(bun)

/* tests/unit/test_runtime.c has a table of its own. */
#ifndef RUNTIME_TABLE
#define RUNTIME_TABLE RUNTIMES

#define RUNTIME(id, NAME, REMEDY, LACKS, KEEPS, ...)                                               \
	const struct runtime id##_runtime = {.name = NAME,                                         \
					     .files = {__VA_ARGS__},                               \
					     .remedy = REMEDY,                                     \
					     .lacks = LACKS,                                       \
					     .keeps_frame_pointers = KEEPS}
#define ADVICE(id, NAME, REMEDY, LACKS, ...) RUNTIME(id, NAME, REMEDY, LACKS, false, __VA_ARGS__)
#define WITH_FRAME_POINTERS(id, NAME, REMEDY, LACKS, ...)                                          \
	RUNTIME(id, NAME, REMEDY, LACKS, true, __VA_ARGS__)

ADVICE(openj9, "OpenJ9", "start it with -XX:+PerfTool", NO_NAMES, {"libj9jit", false});
ADVICE(dotnet, ".NET", "start it with DOTNET_PerfMapEnabled=1", NO_NAMES, {"libcoreclr.so", true});
/* without +JPperf its rbp is no address */
WITH_FRAME_POINTERS(erlang, "Erlang",
		    "start it with +JPperf true, for its stacks as well (OTP 25 or newer)",
		    "Erlang's functions have no names, and no whole stacks", {"beam.smp", true});
ADVICE(php, "PHP", "start it with opcache.jit_debug=16", NO_INTERPRETED, {"php", true},
       {"php-fpm", true}, {"libphp", false});
ADVICE(ruby, "Ruby", "start it with --yjit-perf", NO_INTERPRETED, {"ruby", true},
       {"libruby", false});
WITH_FRAME_POINTERS(wasmtime, "Wasmtime", "start it with --profile=perfmap", NO_NAMES,
		    {"wasmtime", true});
ADVICE(iwasm, "WAMR", "build it with WAMR_BUILD_LINUX_PERF=1, and start it with --perf-profile",
       NO_NAMES, {"iwasm", true});
ADVICE(julia, "Julia", "start it with ENABLE_JITPROFILING=1", NO_NAMES, {"julia", true});
ADVICE(mono, "Mono", "start it with MONO_ENV_OPTIONS=--jitmap", NO_NAMES, {"mono", true});
ADVICE(qemu, "QEMU", "start it with -perfmap", "translated code has no names", {"qemu-", false});
WITH_FRAME_POINTERS(bun, "Bun", "start it with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/tmp",
		    NO_NAMES, {"bun", true},
		    {"bun.exe", true}); /* so it is called in npm's package, on Linux too */
#endif

#define X(id) extern const struct runtime id##_runtime;
RUNTIME_TABLE(X)
#undef X

static const struct runtime *const runtimes[] = {
#define X(id) &id##_runtime,
	RUNTIME_TABLE(X)
#undef X
};
#define RUNTIME_COUNT (sizeof(runtimes) / sizeof(runtimes[0]))

/* ---- by files -------------------------------------------------------------------------------- */

static bool matches_name(const struct runtime *runtime, const char *name, bool whole)
{
	for (unsigned int i = 0; i < RUNTIME_FILES && runtime->files[i].start; i++) {
		const struct runtime_file *file = &runtime->files[i];
		size_t size = strlen(file->start);

		if (!strncmp(name, file->start, size) &&
		    (!whole || !file->whole || !name[size + strspn(name + size, "0123456789.")]))
			return true;
	}
	return false;
}

static const struct runtime *find_by_name(const char *name, bool whole)
{
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		if (matches_name(runtimes[i], name, whole))
			return runtimes[i];
	return NULL;
}

const struct runtime *runtime_of_file(const char *name)
{
	return find_by_name(name, true);
}

const struct runtime *runtime_like_file(const char *name)
{
	return find_by_name(name, false);
}

bool runtime_may_be_in(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const struct runtime *runtime = runtime_like_file(name);

	return runtime && runtime->memory && runtime->memory->home == runtime &&
	       !(runtime->modules && strstr(name, runtime->modules));
}

const struct runtime *runtime_of_made_code(enum made_by by)
{
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		if (runtimes[i]->frame_sizes && runtimes[i]->by == by)
			return runtimes[i];
	return NULL;
}

unsigned int runtime_rank(const struct runtime *runtime)
{
	unsigned int rank = 0;

	while (rank < RUNTIME_COUNT && runtimes[rank] != runtime)
		rank++;
	return rank;
}

/* ---- memory ---------------------------------------------------------------------------------- */

const struct runtime_memory *runtime_memory(unsigned int number)
{
	for (size_t i = 0; i < RUNTIME_COUNT; i++)
		if (runtimes[i]->memory && runtimes[i]->memory->home == runtimes[i] && !number--)
			return runtimes[i]->memory;
	return NULL;
}

const struct runtime *runtime_of_note(enum frame_note_kind kind)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		for (size_t k = 0; k < memory->note_count; k++)
			if (memory->notes[k].kind == kind)
				return memory->home;
	return NULL;
}

void note_table__init(struct note_table *notes)
{
	const struct runtime_memory *memory;

	*notes = (struct note_table){};
	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		for (size_t k = 0; k < memory->note_count; k++)
			notes->of[memory->notes[k].kind] = &memory->notes[k];
}

void surveyed_runtime__judge(struct surveyed_runtime *runtime, enum survey_mark mark,
			     const char *format, ...)
{
	va_list args;

	runtime->mark = mark;
	va_start(args, format);
	vsnprintf(runtime->text, sizeof(runtime->text), format, args);
	va_end(args);
}
