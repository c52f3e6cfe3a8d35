/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of unwind tables: the C library of this process, which is large and was not changed just now. */
#ifndef TESTS_UNIT_C_LIBRARY_H
#define TESTS_UNIT_C_LIBRARY_H

#include <link.h>

static inline int take_c_library(struct dl_phdr_info *info, size_t size, void *fd)
{
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	*(int *)fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 1;
}

static inline int open_c_library(void)
{
	int fd = -1;

	assert_int_equal(dl_iterate_phdr(take_c_library, &fd), 1);
	assert_true(fd >= 0);
	return fd;
}

#endif
