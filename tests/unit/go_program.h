/* SPDX-License-Identifier: BSD-2-Clause */
/* For unit tests of programs that the machine's own Go makes. To be included after cmocka.h. */
#ifndef TESTS_UNIT_GO_PROGRAM_H
#define TESTS_UNIT_GO_PROGRAM_H

#include <string.h>

#include "unit/tools.h"

/* In front of a command for run(), whose first `go build` takes the scratch directory's program. */
#define GO                                                                                         \
	"export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off "                                   \
	"GOCACHE=${GOCACHE:-${HOME:-/tmp}/.cache/go-build} && "

/* A scratch directory with a module of one file. 0 or -1. */
static inline int make_go_module(const char *source)
{
	static const char MODULE[] = "module example\ngo 1.18\n";

	if (make_scratch())
		return -1;
	write_scratch("main.go", source, strlen(source));
	write_scratch("go.mod", MODULE, strlen(MODULE));
	return 0;
}

#endif
