/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of Java methods in all forms in which they come: brief and full ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/java_name.h"

static const struct {
	const char *text, *brief, *full; /* full NULL: as the text */
} methods[] = {
	/* the JVM's perf map */
	{"void Fib.run(int)", "Fib.run", NULL},
	{"int[][] a.b.Outer$In.run(java.lang.String[], int)", "a.b.Outer$In.run", NULL},
	{"void a.B.<init>()", "a.B.<init>", NULL},
	{"java.lang.Object W$$Lambda$14/0x0000000800c03000.apply(int)", "W$$Lambda$14.apply",
	 "java.lang.Object W$$Lambda$14.apply(int)"},
	{"void K.does a thing(int)", "K.does a thing", NULL},
	{"void a.B.c(java.lang.St", "a.B.c", NULL}, /* cut by a limit */
	/* perf's JVMTI agent, perf-map-agent */
	{"LApp;handleRequest()I", "App.handleRequest", "int App.handleRequest()"},
	{"La/b/Outer;run(I[Ljava/lang/String;[[Z)V", "a.b.Outer.run",
	 "void a.b.Outer.run(int, java.lang.String[], boolean[][])"},
	{"LW$$Lambda$14.0x0000000800c03000;apply(J)D", "W$$Lambda$14.apply",
	 "double W$$Lambda$14.apply(long)"},
	{"La/B;::c", "a.B.c", "a.B.c"},
	{"La/B;::c(I)V", "a.B.c", "void a.B.c(int)"},
	{"La/B;c(I", "a.B.c", "a.B.c"},
};

static const char *const others[] = {
	"",
	"Interpreter",
	"StubRoutines (1)",
	"StubRoutines (initial stubs)",
	"[I2C/C2I adapters]",
	"[MethodHandles adapters]",
	"void foo::bar(int)",
	"void ns.foo::bar(int)",
	"JS:~f /a.b/c(1).js:1:2",
	"Integer#fib (/home/a/fib.rb:3)",
	"int32 [app] Program::Fib(int32)[Tier0]",
	"void (*f)(int)",
	"fib",
	"a.B.c",
	"void f(int)",
	"void .f(int)",
	"void a.(int)",
	"void a.b(int) const",
	"std::vector<a.b> x.y(int)",
	"L;",
	"L;f",
	"La;",
	"La;::",
	"Lua; a chunk",
};

static void methods_of_all_sources_have_brief_and_full_names(void **state)
{
	static struct java_name name;

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const char *text = methods[i].text;

		if (!java_name__parse(&name, text, strlen(text)))
			fail_msg("%s is not read as a method", text);
		assert_string_equal(name.brief, methods[i].brief);
		assert_string_equal(name.full, methods[i].full ? methods[i].full : text);
	}
}

/* The name of one and the same method does not depend on its source. */
static void methods_of_class_files_have_the_same_name(void **state)
{
	static const struct java_method m = {"a/b/W$$Lambda+0x00007f86a4001000", "run",
					     "(I[Ljava/lang/String;)V"};
	static const struct java_method unknown = {"a/B", "c", ""};
	static const struct java_method bad = {"a/B", "c", "(I?)V"};
	static struct java_name name;
	char full[256], small[8];

	(void)state;
	java_name__full(full, sizeof(full), &m);
	assert_string_equal(full, "void a.b.W$$Lambda.run(int, java.lang.String[])");
	assert_true(java_name__parse(&name, full, strlen(full)));
	assert_string_equal(name.full, full);
	assert_string_equal(name.brief, "a.b.W$$Lambda.run");
	java_name__full(full, sizeof(full), &unknown);
	assert_string_equal(full, "a.B.c");
	java_name__full(full, sizeof(full), &bad);
	assert_string_equal(full, "a.B.c");
	java_name__full(small, sizeof(small), &m);
	assert_string_equal(small, "void a.");
}

static void names_that_are_no_java_methods_are_not_parsed(void **state)
{
	static struct java_name name;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (java_name__parse(&name, others[i], strlen(others[i])))
			fail_msg("%s is read as %s", others[i], name.full);
	/* what does not fit, and what is not text */
	text = malloc(JAVA_NAME_MAX + 64);
	assert_non_null(text);
	memset(text, 'a', JAVA_NAME_MAX + 64);
	memcpy(text, "int a.", 6);
	text[JAVA_NAME_MAX - 3] = '(';
	assert_true(java_name__parse(&name, text, JAVA_NAME_MAX - 1));
	assert_false(java_name__parse(&name, text, JAVA_NAME_MAX));
	text[20] = '\0';
	assert_false(java_name__parse(&name, text, JAVA_NAME_MAX - 1));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_of_all_sources_have_brief_and_full_names),
		cmocka_unit_test(methods_of_class_files_have_the_same_name),
		cmocka_unit_test(names_that_are_no_java_methods_are_not_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
