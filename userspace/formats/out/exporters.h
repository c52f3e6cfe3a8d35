/* SPDX-License-Identifier: BSD-2-Clause */
/* The formats, one object each, and how a name or a path picks one of exporters(). */
#ifndef FORMATS_OUT_EXPORTERS_H
#define FORMATS_OUT_EXPORTERS_H

#include <sysprof/exporter.h>

extern const struct exporter firefox_exporter;
extern const struct exporter cpuprofile_exporter;
extern const struct exporter trace_exporter;
extern const struct exporter pprof_exporter;
extern const struct exporter folded_exporter;
extern const struct exporter html_exporter;
extern const struct exporter text_exporter;

/* By its name ("firefox"): NULL when there is none. */
const struct exporter *exporter_by_name(const char *name);

/*
 * By the longest suffix of the path that belongs to a format. NULL: none, and *why (static) says
 * the problem without the name. A suffix of a format that this version does not write is an error,
 * never the shorter suffix of another format.
 */
const struct exporter *exporter_for_path(const char *path, const char **why);

/* A sentence on the problem of a file of this size, before compression; NULL: none. */
const char *export_size_problem(const struct exporter *exporter, uint64_t size);

/* The thread with the most CPU samples, the first of equals; 0 if the profile has no thread. */
struct thread_id export_busiest_thread(const struct profile *profile);

#endif
