/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/jit_runtime.h"

#include <stddef.h>
#include <string.h>

struct known_file {
	const char *start; /* of the file's name */
	bool whole;	   /* ... and all of it, but for a version: digits and dots */
	const struct jit_runtime *runtime;
};

#define NODE		"start it with node --perf-basic-prof (NODE_OPTIONS works too)"
#define JAVA		"record with --jvm-perfmap (or run jcmd PID Compiler.perfmap)"
#define OPENJ9		"start it with -XX:+PerfTool"
#define PYTHON		"start it with python3 -X perf (Python 3.12 or newer)"
#define DOTNET		"start it with DOTNET_PerfMapEnabled=1"
#define ERLANG		"start it with +JPperf true, for its stacks as well (OTP 25 or newer)"
#define PHP		"start it with opcache.jit_debug=16"
#define RUBY		"start it with --yjit-perf"
#define CHROME		"start it with --js-flags=--perf-basic-prof --no-sandbox"
#define DENO		"start it with --v8-flags=--perf-basic-prof"
#define LUAJIT		"build it with -DLUAJIT_USE_PERFTOOLS"
#define PYPY		"it cannot write one; --jit off has its interpreter's functions instead"
#define BUN		"start it with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/tmp"
#define WASMTIME	"start it with --profile=perfmap"
#define IWASM		"build it with WAMR_BUILD_LINUX_PERF=1, and start it with --perf-profile"

#define NO_NAMES	"its functions have no names"
#define NO_JAVA		"stacks end at the first frame of Java, whose methods have no names"
#define NO_ERLANG	"Erlang's functions have no names, and no whole stacks"
#define NO_INTERPRETED	"its functions have no names: only the interpreter's own are seen"
#define NO_TRACES	"compiled traces have no names"
#define NO_TRANSLATIONS "translated code has no names"

static const struct jit_runtime node = {"Node.js", NODE, NO_NAMES, JIT_MEMORY_V8};
static const struct jit_runtime python = {"Python", PYTHON, NO_INTERPRETED, JIT_MEMORY_PYTHON};
static const struct jit_runtime java = {"Java", JAVA, NO_JAVA, JIT_MEMORY_HOTSPOT};
static const struct jit_runtime openj9 = {"OpenJ9", OPENJ9, NO_NAMES, JIT_MEMORY_NONE};
static const struct jit_runtime luajit = {"LuaJIT", LUAJIT, NO_TRACES, JIT_MEMORY_NONE};
static const struct jit_runtime dotnet = {".NET", DOTNET, NO_NAMES, JIT_MEMORY_NONE};
static const struct jit_runtime erlang = {"Erlang", ERLANG, NO_ERLANG, JIT_MEMORY_NONE};
static const struct jit_runtime php = {"PHP", PHP, NO_INTERPRETED, JIT_MEMORY_NONE};
static const struct jit_runtime ruby = {"Ruby", RUBY, NO_INTERPRETED, JIT_MEMORY_NONE};
static const struct jit_runtime pypy = {"PyPy", PYPY, NO_TRACES, JIT_MEMORY_NONE};
static const struct jit_runtime wasmtime = {"Wasmtime", WASMTIME, NO_NAMES, JIT_MEMORY_NONE};
static const struct jit_runtime iwasm = {"WAMR", IWASM, NO_NAMES, JIT_MEMORY_NONE};
static const struct jit_runtime deno = {"Deno", DENO, NO_NAMES, JIT_MEMORY_V8};
static const struct jit_runtime chrome = {"Chrome", CHROME, NO_NAMES, JIT_MEMORY_V8};
static const struct jit_runtime electron = {"Electron", CHROME, NO_NAMES, JIT_MEMORY_V8};
static const struct jit_runtime julia = {"Julia", "start it with ENABLE_JITPROFILING=1", NO_NAMES,
					 JIT_MEMORY_NONE};
static const struct jit_runtime mono = {"Mono", "start it with MONO_ENV_OPTIONS=--jitmap", NO_NAMES,
					JIT_MEMORY_NONE};
static const struct jit_runtime qemu = {"QEMU", "start it with -perfmap", NO_TRANSLATIONS,
					JIT_MEMORY_NONE};
static const struct jit_runtime bun = {"Bun", BUN, NO_NAMES, JIT_MEMORY_NONE};

/* Of several in one process the first counts in a summary. */
static const struct known_file known_files[] = {
	{"node", true, &node},
	{"nodejs", true, &node},
	{"libnode.so", false, &node},
	{"nsolid", true, &node},
	{"libjvm.so", true, &java},
	{"libj9jit", false, &openj9},
	/* before Python: it may be a module of one */
	{"luajit", false, &luajit},
	{"libluajit", false, &luajit},
	{"python", true, &python},
	{"libpython", false, &python},
	{"libcoreclr.so", true, &dotnet},
	{"beam.smp", true, &erlang},
	{"php", true, &php},
	{"php-fpm", true, &php},
	{"libphp", false, &php},
	{"ruby", true, &ruby},
	{"libruby", false, &ruby},
	{"pypy", false, &pypy},
	{"libpypy", false, &pypy},
	{"wasmtime", true, &wasmtime},
	{"iwasm", true, &iwasm},
	{"deno", true, &deno},
	{"chrome", true, &chrome},
	{"chromium", true, &chrome},
	{"electron", true, &electron},
	{"julia", true, &julia},
	{"mono", true, &mono},
	{"qemu-", false, &qemu},
	{"bun", true, &bun},
};

const struct jit_runtime *jit_runtime_by_memory(enum jit_runtime_memory memory)
{
	static const struct jit_runtime *const runtimes[JIT_MEMORY_COUNT] = {
		[JIT_MEMORY_V8] = &node,
		[JIT_MEMORY_PYTHON] = &python,
		[JIT_MEMORY_HOTSPOT] = &java,
	};

	return memory < JIT_MEMORY_COUNT ? runtimes[memory] : NULL;
}

static bool matches_name(const struct known_file *known, const char *name)
{
	size_t size = strlen(known->start);

	if (strncmp(name, known->start, size))
		return false;
	return !known->whole || !name[size + strspn(name + size, "0123456789.")];
}

const struct jit_runtime *jit_runtime_of_file(const char *name)
{
	for (size_t i = 0; i < sizeof(known_files) / sizeof(known_files[0]); i++)
		if (matches_name(&known_files[i], name))
			return known_files[i].runtime;
	return NULL;
}

unsigned int jit_runtime_rank(const struct jit_runtime *runtime)
{
	unsigned int rank = 0;

	while (rank < sizeof(known_files) / sizeof(known_files[0]) &&
	       known_files[rank].runtime != runtime)
		rank++;
	return rank;
}
