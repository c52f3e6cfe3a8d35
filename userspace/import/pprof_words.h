/* SPDX-License-Identifier: BSD-2-Clause */
/* What the words in a pprof file stand for: keys of labels, units, names of mappings. */
#ifndef IMPORT_PPROF_WORDS_H
#define IMPORT_PPROF_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

enum label_kind {
	LABEL_OTHER,
	LABEL_PID,
	LABEL_TID,
	LABEL_THREAD,
	LABEL_PROCESS,
	LABEL_COMM,
	LABEL_CGROUP,
	LABEL_GIL,
};

enum label_kind pprof_label_kind(const uint8_t *bytes, size_t size);

/* "held", …: as the exporter writes it. */
enum gil_state pprof_gil_state(const uint8_t *bytes, size_t size);

/* Nanoseconds of a unit of time; 0: it is none. */
uint64_t pprof_unit(const uint8_t *bytes, size_t size);

/* What is mapped under this name, and what its code is. */
enum dso_kind pprof_mapping_kind(const char *path, enum profile_category *category);

#endif
