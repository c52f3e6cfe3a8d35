/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface to libdw: an address to its inline chain, with executing lines and definition sites.
 */
#ifndef SYMBOLIZE_DWARF_H
#define SYMBOLIZE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

struct dwarf_reader;

struct dwarf_stats {
	uint64_t units, units_indexed, units_skipped;
	uint64_t inflated; /* bytes */
	bool incomplete;   /* sections are damaged, or the dwz file is missing */
	bool left;	   /* a limit left out a part */
};

struct dwarf_options {
	uint64_t base;	       /* where the file begins that `fd` is for */
	int alt_fd;	       /* the dwz file, or -1 */
	bool packaged;	       /* its .dwo files may be in a .dwp file */
	uint64_t memory_limit; /* bytes */
};

/* Does libdw read .dwp files? It looks for one called /proc/self/fd/NUMBER.dwp. */
bool dwarf_reads_packages(void);

/*
 * `fd`: a file with DWARF (the module or its debug file). The caller keeps it and the dwz file;
 * they are not read after this call. 0; -ENODATA: no DWARF; -EBADMSG: damaged beyond use; -EFBIG:
 * larger than the limit when inflated; -ENOTSUP: unsupported compression; -ENOMEM; -EIO.
 */
int dwarf_reader__open(int fd, const struct dwarf_options *options, struct dwarf_reader **reader);
void dwarf_reader__free(struct dwarf_reader *r);

/* A level of the chain of an address. */
struct dwarf_frame {
	const char *name;    /* DW_AT_name, or NULL */
	const char *linkage; /* DW_AT_linkage_name, or NULL */
	struct symbol_frame
		where; /* function is NULL here; the files are joined with the comp dir */
};

struct dwarf_chain {
	const struct dwarf_frame *frames; /* innermost first, valid until the next request */
	size_t count;			  /* 0: no DWARF covers the address */
	uint64_t until;	 /* addresses from the requested one up to this one have this answer */
	uint64_t number; /* equal to the last one's: only the innermost place differs */
};

/* The chain of an ELF virtual address of that file; fastest if they ascend. 0, -ENOMEM. */
int dwarf_reader__resolve(struct dwarf_reader *r, uint64_t address, struct dwarf_chain *chain);

/* The MD5 (16 bytes) of a file in an answer, as the compiler has written it; NULL: unknown. */
const unsigned char *dwarf_reader__md5(struct dwarf_reader *r, const char *path);

/* Called for ranges, none of which is empty; nonzero stops and is returned. */
typedef int (*dwarf_range_fn)(void *context, uint64_t start, uint64_t end);

/* Each stretch of code of one unit, in any order; may overlap. 0, -ENOMEM, or visit's result. */
int dwarf_reader__each_unit(struct dwarf_reader *r, dwarf_range_fn visit, void *context);
/* Mark the unit of an address: 0, -ENOMEM. Is that of another address one of these? */
int dwarf_reader__mark_unit(struct dwarf_reader *r, uint64_t address);
bool dwarf_reader__is_marked(struct dwarf_reader *r, uint64_t address);

void dwarf_reader__stats(const struct dwarf_reader *r, struct dwarf_stats *stats);

#endif
