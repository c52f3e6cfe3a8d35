/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/target_memory.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"

#define PAGE 4096u

int target_memory__read(struct target_memory *m, void *to, size_t size, uint64_t address)
{
	if (!m->reads_left || m->bytes_left < size) {
		m->reads_left = 0;
		return -EDQUOT;
	}
	m->reads_left--;
	m->bytes_left -= size;
	if (address > UINT64_MAX - size)
		return -ENODATA;
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
		size_t left_in_page = PAGE - ((address + got) & (PAGE - 1));
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
