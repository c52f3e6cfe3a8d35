/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/target_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/proc_task.h"

void target_memory__forget(struct target_memory *m)
{
	if (m->pages)
		memset(m->pages->address, 0, sizeof(m->pages->address));
}

/* Where a page is kept; NULL: it cannot be read. */
static const unsigned char *page_at(struct target_memory *m, uint64_t page)
{
	struct target_pages *p = m->pages;
	uint32_t i;

	if (!page)
		return NULL;
	for (i = 0; i < TARGET_PAGES; i++) {
		if (p->address[i] == page)
			return p->bytes[i];
	}
	i = p->oldest;
	p->address[i] = 0;
	if (m->read(m->context, p->bytes[i], TARGET_PAGE, page))
		return NULL;
	p->address[i] = page;
	p->oldest = (i + 1) % TARGET_PAGES;
	return p->bytes[i];
}

static int read_by_pages(struct target_memory *m, void *to, size_t size, uint64_t address)
{
	size_t done = 0;

	while (done < size) {
		size_t in_page = (address + done) & (TARGET_PAGE - 1);
		size_t part = min_u64(TARGET_PAGE - in_page, size - done);
		const unsigned char *page = page_at(m, address + done - in_page);

		if (!page) /* this read returns the reason */
			return m->read(m->context, to, size, address);
		memcpy((char *)to + done, page + in_page, part);
		done += part;
	}
	return 0;
}

int target_memory__read(struct target_memory *m, void *to, size_t size, uint64_t address)
{
	if (!m->reads_left || m->bytes_left < size) {
		m->reads_left = 0;
		m->left = true;
		return -EDQUOT;
	}
	m->reads_left--;
	m->bytes_left -= size;
	if (address > UINT64_MAX - size)
		return -ENODATA;
	if (m->pages && size <= TARGET_PAGES_READ)
		return read_by_pages(m, to, size, address);
	return m->read(m->context, to, size, address);
}

int target_memory__word(struct target_memory *m, uint64_t *value, uint64_t address)
{
	return target_memory__read(m, value, sizeof(*value), address);
}

int target_memory__u32(struct target_memory *m, uint32_t *value, uint64_t address)
{
	return target_memory__read(m, value, sizeof(*value), address);
}

int target_memory__u16(struct target_memory *m, uint16_t *value, uint64_t address)
{
	return target_memory__read(m, value, sizeof(*value), address);
}

int target_memory__string(struct target_memory *m, char *to, size_t size, uint64_t address)
{
	size_t got = 0;

	while (got + 1 < size) {
		size_t left_in_page = TARGET_PAGE - ((address + got) & (TARGET_PAGE - 1));
		size_t part = min_u64(left_in_page, size - 1 - got);
		int err = target_memory__read(m, to + got, part, address + got);

		if (err) {
			to[got] = '\0';
			return err;
		}
		if (memchr(to + got, '\0', part))
			return 0;
		got += part;
	}
	if (size)
		to[got] = '\0';
	return -ENAMETOOLONG;
}

/* ---- of a process that runs ------------------------------------------------------------------ */

int process_memory__read(pid_t pid, void *to, size_t size, uint64_t address)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return errno == EFAULT ? -ENODATA : -errno;
	return (size_t)got == size ? 0 : -ENODATA;
}

int process_memory__open(pid_t pid)
{
	int fd = open(proc_path(pid, "mem").text, O_RDONLY | O_CLOEXEC);

	if (fd > 0)
		return fd;
	if (fd < 0)
		return -errno;
	close(fd);
	return -EBADF;
}

int process_memory__read_at(int fd, void *to, size_t size, uint64_t address)
{
	ssize_t got = address > INT64_MAX - size ? -1 : pread(fd, to, size, (off_t)address);

	if (!got && size)
		return -ESRCH;
	return got == (ssize_t)size ? 0 : -ENODATA;
}
