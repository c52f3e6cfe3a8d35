/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of Java methods. Brief: "a.b.Outer.run", as async-profiler prints it. Full: "void a.b.Outer.run(int, java.lang.String[])",
 * as the JVM's perf map has it. Hidden classes (lambdas) have no address in either, because it differs in each run.
 */
#ifndef BASE_JAVA_NAME_H
#define BASE_JAVA_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From what a class file has: "a/b/Outer", "run" and "(I[Ljava/lang/String;)V". Without a valid descriptor the full name is the
 * brief one. Text that does not fit is cut.
 */
struct java_method {
	const char *class_name, *name, *descriptor;
};
void java_name__full(char *full, size_t size, const struct java_method *method);

#define JAVA_NAME_MAX 4096u

struct java_name {
	char brief[JAVA_NAME_MAX];
	char full[JAVA_NAME_MAX];
};

/*
 * From a name of JIT code, as the JVM's perf map ("void a.b.Outer.run(int)", also without its end), perf's JVMTI agent
 * ("La/b/Outer;run(I)V") or perf-map-agent ("La/b/Outer;::run") writes it. False: it is not the name of a Java method.
 */
bool java_name__parse(struct java_name *name, const char *text, size_t size);

#endif
