/* SPDX-License-Identifier: BSD-2-Clause */
/* The source files that runtimes name: of scripts and of code that was compiled from them. */
#ifndef WINDOW_SCRIPTS_H
#define WINDOW_SCRIPTS_H

#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/map.h"
#include "window/window.h"

/* The samples of a location; a frame that is twice in a stack counts twice. */
struct location_samples {
	uint32_t all, self;
};

/* A file as processes of a user in a root directory name it. */
struct script {
	struct dso_id dso;
	struct string_id path;
	int root_fd;
	uint32_t user;
	uint64_t started; /* no code of these processes is older, ns since the epoch; 0: unknown */
	uint64_t
		samples; /* of the hottest location with a line of it: own ones in the upper half */
};
MAP_TYPE(script_map, struct script);

struct scripts {
	struct script_map all;
	VEC(struct symbolizer_script) wanted;
};

/* Those with locations in at least `least` samples. 0, -ENOMEM. */
int scripts__find(struct scripts *s, struct window *w, const struct location_samples *samples,
		  uint64_t least);
void scripts__fini(struct scripts *s);
#endif
