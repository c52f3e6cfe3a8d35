/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels of a pprof file's samples: owners, and states of a thread. */
#ifndef FORMATS_IN_PPROF_LABELS_H
#define FORMATS_IN_PPROF_LABELS_H

#include "formats/in/pprof_message.h"

/* The labels of a sample. */
struct pprof_labels {
	struct sample_owner owner;
	struct string_id comm;
	enum gil_state gil;
	enum sample_context context;
};

int pprof_labels__read(struct pprof *p, const struct wire *sample, struct pprof_labels *to);

/* Sets p->any and the program. After mappings were named, before locations are read. */
int pprof_labels__find_any_process(struct pprof *p);

#endif
