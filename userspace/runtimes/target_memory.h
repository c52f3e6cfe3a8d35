/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a process that has a runtime in it.
 *
 * It is a tenant's: its contents may be anything, may change between two reads, or lead in circles,
 * and a page fault may never end. So it is read in a process that can be abandoned, and a limit of
 * bytes and reads of each request ends every loop over lengths and links that were read.
 */
#ifndef RUNTIMES_TARGET_MEMORY_H
#define RUNTIMES_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Memory of the process, [start, end). */
struct target_range {
	uint64_t start, end;
};

/* All `size` bytes. 0; -ENODATA: they are not there; -ESRCH, -EPERM: process gone, or no access. */
typedef int (*target_read_fn)(void *context, void *to, size_t size, uint64_t address);

struct target_memory {
	target_read_fn read;
	void *context;
	uint64_t bytes_left;
	uint32_t reads_left;
	bool left;		    /* set: a limit ended or cut short what was to be read */
	struct target_pages *pages; /* what is kept, the caller's; NULL: each read looks anew */
};

#define TARGET_PAGE	  4096u
#define TARGET_PAGES	  16u
#define TARGET_PAGES_READ 1024u /* bytes: larger reads are not kept */

/*
 * Pages that were read, for links between small objects close together, and for tables of them. A
 * second read of a page returns the bytes of the first. So pages are kept for one function or
 * table, and the check whether it is still the same bypasses them. Zeroed, it has none.
 */
struct target_pages {
	uint64_t address[TARGET_PAGES]; /* 0: none */
	uint32_t oldest;
	unsigned char bytes[TARGET_PAGES][TARGET_PAGE];
};

/* May it be the address of an object: aligned, and in a process's half of the address space? */
static inline bool target_is_pointer(uint64_t word)
{
	return word >= TARGET_PAGE && word % 8 == 0 && !(word >> 47);
}

/* A number of `width` bytes, 8 at most, in bytes that were read; 0 where it is not within them. */
static inline uint64_t target_number(const void *bytes, size_t size, uint64_t at, size_t width)
{
	uint64_t number = 0;

	if (at <= size && width <= size - at)
		memcpy(&number, (const char *)bytes + at, width);
	return number;
}

/* Drop its cached pages, if it has any. */
void target_memory__forget(struct target_memory *m);

/* As target_read_fn; -EDQUOT: the limit is reached, all reads fail. Cached bytes count, too. */
int target_memory__read(struct target_memory *m, void *to, size_t size, uint64_t address);
/* One value of 8, 4 or 2 bytes, in the byte order of this machine. */
int target_memory__word(struct target_memory *m, uint64_t *value, uint64_t address);
int target_memory__u32(struct target_memory *m, uint32_t *value, uint64_t address);
int target_memory__u16(struct target_memory *m, uint16_t *value, uint64_t address);
/*
 * A string that ends with NUL, of at most size - 1 bytes; `to` always ends with NUL. Reads no page
 * behind its end. 0; -ENAMETOOLONG: it is longer; else as above.
 */
int target_memory__string(struct target_memory *m, char *to, size_t size, uint64_t address);

/* ---- of a process that runs ------------------------------------------------------------------ */

/* All of it. 0; -ENODATA: it is not there; -ESRCH, -EPERM. */
int process_memory__read(pid_t pid, void *to, size_t size, uint64_t address);

/*
 * The same by /proc/PID/mem, whose descriptor stands for the program at the time of opening: access
 * was checked then, and not each time. -ESRCH: that has ended, or executed another one.
 */
int process_memory__open(pid_t pid); /* a descriptor, never 0, or negative errno */
int process_memory__read_at(int fd, void *to, size_t size, uint64_t address);

#endif
