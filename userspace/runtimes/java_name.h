/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of Java methods. Brief: "a.b.Outer.run", as async-profiler prints it. Full: "void
 * a.b.Outer.run(int)", as in the JVM's perf map. Both without addresses of hidden classes.
 */
#ifndef RUNTIMES_JAVA_NAME_H
#define RUNTIMES_JAVA_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From a class file: "a/b/Outer", "run", "(I[Ljava/lang/String;)V". Without a valid descriptor the
 * full name is the brief one. Text that does not fit is cut.
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
 * From a name of JIT code by the JVM's perf map ("void a.b.Outer.run(int)", also cut off), perf's
 * JVMTI agent ("La/b/Outer;run(I)V") or perf-map-agent ("La/b/Outer;::run"). False: no Java method.
 */
bool java_name__parse(struct java_name *name, const char *text, size_t size);

#endif
