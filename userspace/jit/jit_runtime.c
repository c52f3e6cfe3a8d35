/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/jit_runtime.h"

#include <stddef.h>
#include <string.h>

struct known_file {
	const char *start; /* of the file's name */
	bool whole;	   /* ... and all of it, but for a version: digits and dots */
	struct jit_runtime runtime;
};

#define NODE "start it with node --perf-basic-prof (NODE_OPTIONS works too)"
#define JAVA                                                                                       \
	"start it with -XX:+PreserveFramePointer, and record with --jvm-perfmap (or run jcmd PID " \
	"Compiler.perfmap)"
#define PYTHON "start it with python3 -X perf (Python 3.12 or newer)"
#define DOTNET "start it with DOTNET_PerfMapEnabled=1"
#define ERLANG "start it with +JPperf true, for its stacks as well (OTP 25 or newer)"
#define PHP    "start it with opcache.jit_debug=16"
#define RUBY   "start it with --yjit-perf"
#define CHROME "start it with --js-flags=--perf-basic-prof --no-sandbox"
#define LUAJIT "build it with -DLUAJIT_USE_PERFTOOLS"
#define PYPY   "it cannot write one; --jit off has its interpreter's functions instead"
#define BUN    "start it with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/tmp"

static const struct known_file known_files[] = {
	{"node", true, {"Node.js", NODE}},
	{"nodejs", true, {"Node.js", NODE}},
	{"libnode.so", false, {"Node.js", NODE}},
	{"libjvm.so", true, {"Java", JAVA}},
	{"libj9jit", false, {"OpenJ9", "start it with -XX:+PerfTool"}},
	/* before Python: it may be a module of one */
	{"luajit", false, {"LuaJIT", LUAJIT}},
	{"libluajit", false, {"LuaJIT", LUAJIT}},
	{"python", true, {"Python", PYTHON}},
	{"libpython", false, {"Python", PYTHON}},
	{"libcoreclr.so", true, {".NET", DOTNET}},
	{"beam.smp", true, {"Erlang", ERLANG}},
	{"php", true, {"PHP", PHP}},
	{"php-fpm", true, {"PHP", PHP}},
	{"libphp", false, {"PHP", PHP}},
	{"ruby", true, {"Ruby", RUBY}},
	{"libruby", false, {"Ruby", RUBY}},
	{"pypy", false, {"PyPy", PYPY}},
	{"libpypy", false, {"PyPy", PYPY}},
	{"wasmtime", true, {"Wasmtime", "start it with --profile=perfmap"}},
	{"deno", true, {"Deno", "start it with --v8-flags=--perf-basic-prof"}},
	{"chrome", true, {"Chrome", CHROME}},
	{"chromium", true, {"Chrome", CHROME}},
	{"julia", true, {"Julia", "start it with ENABLE_JITPROFILING=1"}},
	{"mono", true, {"Mono", "start it with MONO_ENV_OPTIONS=--jitmap"}},
	{"qemu-", false, {"QEMU", "start it with -perfmap"}},
	{"bun", true, {"Bun", BUN}},
};

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
			return &known_files[i].runtime;
	return NULL;
}
