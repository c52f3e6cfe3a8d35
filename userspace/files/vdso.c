/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own vDSO, found by the address the kernel gave us, copied into a memfd. */
#include "files/vdso.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"

#define OWN_MAPS_MAX (16u << 20)

/* Length of our own vDSO, at the address from the kernel; 0 unknown. */
static uint64_t own_vdso_length(uint64_t address)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	char *line, *newline;

	if (read_file_at(AT_FDCWD, "/proc/self/maps", OWN_MAPS_MAX, &text, &size))
		return 0;
	for (line = text; (newline = strchr(line, '\n')); line = newline + 1) {
		struct proc_mapping mapping;

		if (!proc_parse_mapping(line, newline - line, &mapping) && mapping.start == address)
			return mapping.end - mapping.start;
	}
	return 0;
}

/* A copy in a sealed file. */
static int copy_vdso(uint64_t address, uint64_t length)
{
	_cleanup_close_ int fd = memfd_create("sysprof-vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	err = write_full(fd, (const void *)(uintptr_t)address, length);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	return steal_fd(fd);
}

int vdso_copy(uint64_t *length)
{
	uint64_t address = getauxval(AT_SYSINFO_EHDR);
	uint64_t size = address ? own_vdso_length(address) : 0;
	int fd;

	if (!size)
		return -ENOENT;
	fd = copy_vdso(address, size);
	if (fd >= 0)
		*length = size;
	return fd;
}
