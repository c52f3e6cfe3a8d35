/* SPDX-License-Identifier: BSD-2-Clause */
/* For unit tests of programs that the machine's own Go makes. To be included after cmocka.h. */
#ifndef TESTS_UNIT_GO_PROGRAM_H
#define TESTS_UNIT_GO_PROGRAM_H

#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "unit/tools.h"

/*
 * In front of a command for run(), whose first `go build` takes the scratch directory's program. Of Go's library the programs
 * have what `runtime` needs: that is compiled once for programs at a fixed address and once for PIEs, and the lock lets
 * tests that run in parallel wait for it.
 */
#define GO                                                                                         \
	"export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 "                     \
	"GOCACHE=${GOCACHE:-${HOME:-/tmp}/.cache/go-build} && mkdir -p $GOCACHE && "               \
	"exec 9>$GOCACHE/sysprof-tests.lock && flock 9 && "

/* A scratch directory with a module of one file. */
static inline void make_go_module(const char *source)
{
	static const char MODULE[] = "module example\ngo 1.18\n";

	make_scratch();
	write_scratch("main.go", source, strlen(source));
	write_scratch("go.mod", MODULE, strlen(MODULE));
}

struct go_file {
	int fd;
	struct elf_file *file;
	struct gopclntab *table;
};

/* A file of the scratch directory; what opening its table says. */
static inline int open_go_file(const char *name, struct go_file *o)
{
	*o = (struct go_file){.fd = open_scratch(name, O_RDONLY)};
	assert_int_equal(elf_file__open(o->fd, &o->file), 0);
	return gopclntab__open(o->file, &o->table);
}

static inline void close_go_file(struct go_file *o)
{
	gopclntab__free(o->table);
	elf_file__free(o->file);
	close(o->fd);
}

#endif
