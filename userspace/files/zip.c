/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An archive ends with a record that has the offset of its directory. A directory entry has the
 * offset of its own header; the bytes follow that header, which alone has its length. So the stored
 * entry with the last header before the wanted byte is taken, and only that header is read.
 *
 * The format is that of PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16.
 */
#include "files/zip.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"

#define DIRECTORY_MAX  (4u << 20)
#define COMMENT_MAX    65535u
#define END_SIZE       22u /* of the record at the end, without its comment */
#define ENTRY_SIZE     46u /* of an entry of the directory, without its texts */
#define HEADER_SIZE    30u /* of an entry's own header */

#define END_MAGIC      0x06054b50u
#define ENTRY_MAGIC    0x02014b50u
#define HEADER_MAGIC   0x04034b50u

#define FLAG_ENCRYPTED 1u
#define METHOD_STORED  0u
#define IS_64_BIT      0xffffffffu /* the real number is in another place */

static uint32_t get_number(const uint8_t *bytes, unsigned int size)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (uint32_t)bytes[i] << 8 * i;
	return value;
}

bool zip_is_archive(int fd)
{
	uint8_t magic[4];

	return pread_full(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       get_number(magic, 4) == HEADER_MAGIC;
}

struct directory {
	uint64_t offset, size;
};

/* The record at the end: with a comment that reaches to the end of the file. */
static int find_directory(int fd, uint64_t file_size, struct directory *directory)
{
	uint64_t size = min_u64(file_size, END_SIZE + COMMENT_MAX);
	_cleanup_free_ uint8_t *bytes = malloc(size + 1);
	ssize_t got;

	if (!bytes)
		return -ENOMEM;
	got = pread_full(fd, bytes, size, file_size - size);
	if (got < 0)
		return got;
	for (size_t left = END_SIZE; left <= (size_t)got; left++) {
		const uint8_t *end = bytes + got - left;

		if (get_number(end, 4) != END_MAGIC || get_number(end + 20, 2) != left - END_SIZE)
			continue;
		directory->size = get_number(end + 12, 4);
		directory->offset = get_number(end + 16, 4);
		if (directory->offset == IS_64_BIT || directory->size > file_size ||
		    directory->offset > file_size - directory->size)
			return -EBADMSG;
		return directory->size > DIRECTORY_MAX ? -EFBIG : 0;
	}
	return -EBADMSG;
}

/* The next stored entry of the directory, or NULL. */
static const uint8_t *next_stored(const uint8_t *bytes, size_t size, size_t *at)
{
	while (size - *at >= ENTRY_SIZE && get_number(bytes + *at, 4) == ENTRY_MAGIC) {
		const uint8_t *entry = bytes + *at;
		size_t length = ENTRY_SIZE + get_number(entry + 28, 2) + get_number(entry + 30, 2) +
				get_number(entry + 32, 2);

		if (length > size - *at)
			break;
		*at += length;
		if (get_number(entry + 10, 2) == METHOD_STORED &&
		    !(get_number(entry + 8, 2) & FLAG_ENCRYPTED))
			return entry;
	}
	return NULL;
}

/* The one whose header comes last before `offset`. */
static const uint8_t *nearest_before(const uint8_t *bytes, size_t size, uint64_t offset)
{
	const uint8_t *entry, *nearest = NULL;
	size_t at = 0;

	while ((entry = next_stored(bytes, size, &at))) {
		uint32_t header = get_number(entry + 42, 4);

		if (header < offset && (!nearest || header > get_number(nearest + 42, 4)))
			nearest = entry;
	}
	return nearest;
}

static const uint8_t *first_named(const uint8_t *bytes, size_t size, const char *name)
{
	const uint8_t *entry;
	size_t at = 0, length = strlen(name);

	while ((entry = next_stored(bytes, size, &at)))
		if (get_number(entry + 28, 2) == length &&
		    !memcmp(entry + ENTRY_SIZE, name, length))
			return entry;
	return NULL;
}

static int take_name(const uint8_t *listed, struct zip_entry *entry)
{
	size_t length = get_number(listed + 28, 2);

	if (!length || memchr(listed + ENTRY_SIZE, 0, length))
		return -ENOENT;
	if (length >= sizeof(entry->name))
		return -EFBIG;
	memcpy(entry->name, listed + ENTRY_SIZE, length);
	entry->name[length] = '\0';
	return 0;
}

/* Where the bytes of an entry of the directory are. */
static int locate_entry(int fd, uint64_t file_size, const uint8_t *listed, struct zip_entry *entry)
{
	uint8_t header[HEADER_SIZE];
	uint64_t at = get_number(listed + 42, 4);
	ssize_t got = pread_full(fd, header, sizeof(header), at);

	if (got < 0)
		return got;
	if (got < (ssize_t)sizeof(header) || get_number(header, 4) != HEADER_MAGIC)
		return -EBADMSG;
	entry->offset = at + HEADER_SIZE + get_number(header + 26, 2) + get_number(header + 28, 2);
	entry->size = get_number(listed + 24, 4);
	if (entry->offset > file_size || entry->size > file_size - entry->offset)
		return -EBADMSG;
	return take_name(listed, entry);
}

/* By name, or where that is NULL by the header before `offset`. */
static int find_entry(int fd, const char *name, uint64_t offset, struct zip_entry *entry)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct directory directory = {};
	const uint8_t *listed;
	struct stat st;
	ssize_t got;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = find_directory(fd, st.st_size, &directory);
	if (err)
		return err;
	bytes = malloc(directory.size + 1);
	if (!bytes)
		return -ENOMEM;
	got = pread_full(fd, bytes, directory.size, directory.offset);
	if (got < 0)
		return got;
	listed = name ? first_named(bytes, got, name) : nearest_before(bytes, got, offset);
	return listed ? locate_entry(fd, st.st_size, listed, entry) : -ENOENT;
}

int zip_find(int fd, uint64_t offset, struct zip_entry *entry)
{
	int err = find_entry(fd, NULL, offset, entry);

	if (err)
		return err;
	return offset >= entry->offset && offset - entry->offset < entry->size ? 0 : -ENOENT;
}

int zip_find_name(int fd, const char *name, struct zip_entry *entry)
{
	return find_entry(fd, name, 0, entry);
}
