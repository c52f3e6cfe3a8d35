/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that runtimes write, taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/jit_name.h"

struct expected {
	const char *name, *function, *file;
	uint32_t line, column;
	enum code_tier tier;
};

static const struct expected all[] = {
	/* V8 10 and later */
	{"JS:~fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_INTERPRETED},
	{"JS:^fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_BASELINE},
	{"JS:+fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_MIDDLE},
	{"JS:*fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_OPTIMIZED},
	{"JS:*'fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_OPTIMIZED},
	{"JS:o+fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_MIDDLE},
	{"JS:o*'fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_OPTIMIZED},
	{"JS:fib /home/a/fib.js:3:13", "fib", "/home/a/fib.js", 3, 13, CODE_TIER_NONE},
	{"JS:often /o.js:1:2", "often", "/o.js", 1, 2, CODE_TIER_NONE},
	{"JS:~ /t.js:1:1", "(anonymous)", "/t.js", 1, 1, CODE_TIER_INTERPRETED},
	{"JS:~get a node:internal/url:5:7", "get a", "node:internal/url", 5, 7,
	 CODE_TIER_INTERPRETED},
	{"JS:~get size /a b.js:5:7", "get size", "/a b.js", 5, 7, CODE_TIER_INTERPRETED},
	{"JS:~f REPL1:1:10", "f", "REPL1", 1, 10, CODE_TIER_INTERPRETED},
	{"JS:~f /with spaces in/it.js:10:20", "f", "/with spaces in/it.js", 10, 20,
	 CODE_TIER_INTERPRETED},
	{"JS:~f file:///C:/a.mjs:7:1", "f", "file:///C:/a.mjs", 7, 1, CODE_TIER_INTERPRETED},
	{"JS:*f evalmachine.<anonymous>:1:10", "f", "evalmachine.<anonymous>", 1, 10,
	 CODE_TIER_OPTIMIZED},
	{"Eval:~ :1:1", "(anonymous)", "", 1, 1, CODE_TIER_INTERPRETED},
	{"Script:~ /home/a/fib.js:1:1", "(anonymous)", "/home/a/fib.js", 1, 1,
	 CODE_TIER_INTERPRETED},
	{"Script:~", "(anonymous)", "", 0, 0, CODE_TIER_INTERPRETED},
	{"JS:", "(anonymous)", "", 0, 0, CODE_TIER_NONE},
	{"JS:fib-12-liftoff", "fib", "", 0, 0, CODE_TIER_BASELINE},
	{"JS:wasm-function-7-turbofan", "wasm-function", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"JS:a-turbofan /x.js:1:2", "a-turbofan", "/x.js", 1, 2, CODE_TIER_NONE},
	{"JS:*f /x.js:99999999999:1", "f", "/x.js:99999999999", 1, 0, CODE_TIER_OPTIMIZED},
	{"Builtin:ArrayMap", "Builtin:ArrayMap", "", 0, 0, CODE_TIER_BUILTIN},
	{"BytecodeHandler:LdaZero", "BytecodeHandler:LdaZero", "", 0, 0, CODE_TIER_BUILTIN},
	{"RegExp:^a+ b:1:2$", "RegExp:^a+ b:1:2$", "", 0, 0, CODE_TIER_REGEXP},
	{"Stub:CEntry", "Stub:CEntry", "", 0, 0, CODE_TIER_STUB},
	/* and before */
	{"LazyCompile:*a.renderDOM /opt/app/react-dom-server.js:35", "a.renderDOM",
	 "/opt/app/react-dom-server.js", 35, 0, CODE_TIER_OPTIMIZED},
	{"LazyCompile:~stream.on /opt/app/src/api.js:44", "stream.on", "/opt/app/src/api.js", 44, 0,
	 CODE_TIER_INTERPRETED},
	{"Function:*f /a.js:1", "f", "/a.js", 1, 0, CODE_TIER_OPTIMIZED},
	{"LoadIC:length", "LoadIC:length", "", 0, 0, CODE_TIER_STUB},
	/* CPython */
	{"py::fib:/home/a/fib.py", "fib", "/home/a/fib.py", 0, 0, CODE_TIER_NONE},
	{"py::Outer.<locals>.inner:<frozen importlib._bootstrap>", "Outer.<locals>.inner",
	 "<frozen importlib._bootstrap>", 0, 0, CODE_TIER_NONE},
	{"py::<module>:/a:b.py", "<module>:/a", "b.py", 0, 0, CODE_TIER_NONE},
	{"py::nothing", "py::nothing", "", 0, 0, CODE_TIER_NONE},
	/* .NET */
	{"int32 [app] Program::Fib(int32)[Tier0]", "Program::Fib(int32)", "", 0, 0,
	 CODE_TIER_BASELINE},
	{"int32 [app] Program::Fib(int32)[OptimizedTier1]", "Program::Fib(int32)", "", 0, 0,
	 CODE_TIER_OPTIMIZED},
	{"void [System.Private.CoreLib] System.Array::Sort(int32[])[PreJIT]",
	 "System.Array::Sort(int32[])", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"void [a] B::C(int32[])", "B::C(int32[])", "", 0, 0, CODE_TIER_NONE},
	{"stub GenerateResolveStub<GenerateLookupStub>",
	 "stub GenerateResolveStub<GenerateLookupStub>", "", 0, 0, CODE_TIER_NONE},
	/* HotSpot: as it is */
	{"void Fib.run(int)", "void Fib.run(int)", "", 0, 0, CODE_TIER_NONE},
	{"Interpreter", "Interpreter", "", 0, 0, CODE_TIER_NONE},
	{"StubRoutines::jbyte_arraycopy", "StubRoutines::jbyte_arraycopy", "", 0, 0,
	 CODE_TIER_NONE},
	/* Erlang, LuaJIT, Wasmtime, Ruby, PHP */
	{"$lists:map/2", "lists:map/2", "", 0, 0, CODE_TIER_NONE},
	{"$global::erts_beamasm", "$global::erts_beamasm", "", 0, 0, CODE_TIER_NONE},
	{"TRACE_12::fib.lua:7", "TRACE_12", "fib.lua", 7, 0, CODE_TIER_OPTIMIZED},
	{"wasm[0]::function[3]::fib::inner", "fib::inner", "", 0, 0, CODE_TIER_NONE},
	{"wasm[0]::function[3]", "wasm[0]::function[3]", "", 0, 0, CODE_TIER_NONE},
	{"Integer#fib (/home/a/fib.rb:3)", "Integer#fib", "/home/a/fib.rb", 3, 0, CODE_TIER_NONE},
	{"TRACE-1$fib$7", "fib", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"TRACE-12$App::run$70", "App::run", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"TRACE-x$fib$7", "TRACE-x$fib$7", "", 0, 0, CODE_TIER_NONE},
	{"TRACE-1$7", "TRACE-1$7", "", 0, 0, CODE_TIER_NONE},
	{"JIT$App::run", "App::run", "", 0, 0, CODE_TIER_NONE},
	{"JIT$", "JIT$", "", 0, 0, CODE_TIER_NONE},
	/* JavaScriptCore */
	{"JSC-FTL: fib#EoE7sP", "fib", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"JSC-DFG: /home/a/b.js#BgpeTu", "/home/a/b.js", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"JSC-Baseline: #secret#BY5E5h", "#secret", "", 0, 0, CODE_TIER_BASELINE},
	{"JSC-Baseline: #BY5E5h", "#BY5E5h", "", 0, 0, CODE_TIER_BASELINE},
	{"JSC-FTL: no hash", "no hash", "", 0, 0, CODE_TIER_OPTIMIZED},
	{"JSC-InlineCache: GetByVal Load handler", "InlineCache: GetByVal Load handler", "", 0, 0,
	 CODE_TIER_STUB},
	{"JSC-FTL: ", "JSC-FTL: ", "", 0, 0, CODE_TIER_NONE},
	{"JSC-FTL", "JSC-FTL", "", 0, 0, CODE_TIER_NONE},
	{"f", "f", "", 0, 0, CODE_TIER_NONE},
	{"", "(no name)", "", 0, 0, CODE_TIER_NONE},
};

static void assert_text(const char *name, struct jit_text text, const char *wanted)
{
	if (text.size != strlen(wanted) || (text.size && memcmp(text.text, wanted, text.size)))
		fail_msg("%s: \"%.*s\", wanted is \"%s\"", name, (int)text.size, text.text, wanted);
}

static void names_are_split_into_function_file_line_and_tier(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct expected *e = &all[i];
		struct jit_name name = jit_name_parse(e->name, strlen(e->name));

		assert_text(e->name, name.function, e->function);
		assert_text(e->name, name.file, e->file);
		if (name.line != e->line || name.column != e->column || name.tier != e->tier)
			fail_msg("%s: %u:%u %s", e->name, name.line, name.column,
				 code_tier_text(name.tier));
	}
}

/* Any part of any name is a name, and nothing outside of it is read. */
static void every_part_of_a_name_yields_a_function_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t size = strlen(all[i].name);

		for (size_t start = 0; start <= size; start++) {
			for (size_t end = start; end <= size; end++) {
				char *part = malloc(end - start + 1);
				struct jit_name name;

				memcpy(part, all[i].name + start, end - start);
				part = realloc(part, end - start ? end - start : 1);
				name = jit_name_parse(part, end - start);
				assert_true(name.function.size > 0);
				assert_true(name.tier < CODE_TIER_COUNT);
				free(part);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_split_into_function_file_line_and_tier),
		cmocka_unit_test(every_part_of_a_name_yields_a_function_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
