/* SPDX-License-Identifier: BSD-2-Clause */
/* Zip archives, made byte by byte, so that every field can be wrong on purpose. */
#ifndef TESTS_UNIT_FORGE_ZIP_H
#define TESTS_UNIT_FORGE_ZIP_H

#include "base/io.h"

#define FORGED_ENTRIES 8

struct forged_zip {
	int fd;
	uint64_t size;
	size_t count;
	struct {
		char name[300];
		uint32_t header, data, size;
		uint16_t method, flags;
	} entries[FORGED_ENTRIES];
	uint64_t directory; /* where it is */
};

static inline void zip_bytes(struct forged_zip *z, const void *bytes, size_t size)
{
	assert_int_equal(pwrite(z->fd, bytes, size, (off_t)z->size), size);
	z->size += size;
}

static inline void zip_number(struct forged_zip *z, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = value >> 8 * i;
	zip_bytes(z, bytes, size);
}

static inline void zip_begin(struct forged_zip *z)
{
	*z = (struct forged_zip){.fd = memfd_create("forged.zip", MFD_CLOEXEC)};
	assert_true(z->fd >= 0);
}

/* An entry whose bytes begin at a multiple of `alignment`. */
static inline void zip_add(struct forged_zip *z, const char *name, uint16_t method,
			   const void *data, size_t size, uint64_t alignment)
{
	size_t length = strlen(name), room = -(z->size + 30 + length) % alignment;
	char *nothing = calloc(1, room + 1);

	assert_true(z->count < FORGED_ENTRIES && length < sizeof(z->entries[0].name));
	strcpy(z->entries[z->count].name, name);
	z->entries[z->count].header = z->size;
	z->entries[z->count].size = size;
	z->entries[z->count].method = method;
	zip_number(z, 0x04034b50, 4);
	zip_number(z, 10, 2); /* version */
	zip_number(z, 0, 2);
	zip_number(z, method, 2);
	zip_number(z, 0, 8); /* time, CRC */
	zip_number(z, size, 4);
	zip_number(z, size, 4);
	zip_number(z, length, 2);
	zip_number(z, room, 2);
	zip_bytes(z, name, length);
	zip_bytes(z, nothing, room);
	z->entries[z->count++].data = z->size;
	zip_bytes(z, data, size);
	free(nothing);
}

/* The directory, which may be added again, and the end with a comment. */
static inline void zip_end(struct forged_zip *z, const char *comment)
{
	z->directory = z->size;
	for (size_t i = 0; i < z->count; i++) {
		size_t length = strlen(z->entries[i].name);

		zip_number(z, 0x02014b50, 4);
		zip_number(z, 0, 4); /* versions */
		zip_number(z, z->entries[i].flags, 2);
		zip_number(z, z->entries[i].method, 2);
		zip_number(z, 0, 8); /* time, CRC */
		zip_number(z, z->entries[i].size, 4);
		zip_number(z, z->entries[i].size, 4);
		zip_number(z, length, 2);
		zip_number(z, i, 2); /* extra field */
		zip_number(z, 0, 2); /* comment */
		zip_number(z, 0, 8); /* disk, attributes */
		zip_number(z, z->entries[i].header, 4);
		zip_bytes(z, z->entries[i].name, length);
		zip_bytes(z, "extrafield", i);
	}
	zip_number(z, 0x06054b50, 4);
	zip_number(z, 0, 4); /* disks */
	zip_number(z, z->count, 2);
	zip_number(z, z->count, 2);
	zip_number(z, z->size - 12 - z->directory, 4);
	zip_number(z, z->directory, 4);
	zip_number(z, strlen(comment), 2);
	zip_bytes(z, comment, strlen(comment));
}

/* The end of an archive whose directory is said to have 5 MB, from the start of the file on. */
static inline void zip_end_large(struct forged_zip *z)
{
	assert_int_equal(ftruncate(z->fd, 6 << 20), 0);
	z->size = 6 << 20;
	zip_number(z, 0x06054b50, 8);
	zip_number(z, 0, 4);
	zip_number(z, 5 << 20, 4);
	zip_number(z, 0, 4);
	zip_number(z, 0, 2);
}

#endif
