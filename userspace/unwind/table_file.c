/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format: a header, and the image as it is in memory.
 *
 * It is read by the machine that wrote it and by the sources that wrote it, so everything is in the machine's own
 * order and width. TABLE_MAKER is a hash of these sources, which the Makefile computes: a change of what is built, or
 * of its form, makes the files of former builds invalid.
 *
 * The checksum finds torn and damaged files. It does not protect against a file that is wrong on
 * purpose, and the walk trusts the offsets of a table, so the image is checked as well.
 */
#include "unwind/table_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/io.h"
#include "unwind/table_maker.h"

static const char MAGIC[8] = "sysprofT";

struct file_header {
	char magic[8];
	uint32_t crc; /* of everything behind this field */
	uint32_t header_size;
	uint64_t maker;
	struct file_stamp stamp;
	struct unwind_table_image image; /* but for its bytes, which follow */
};

#define CRC_START (offsetof(struct file_header, crc) + sizeof(uint32_t))

static uint32_t crc_of(const struct file_header *header, const void *bytes, size_t size)
{
	uint32_t crc = crc32_update(0, (const char *)header + CRC_START,
				    sizeof(*header) - CRC_START);

	return crc32_update(crc, bytes, size);
}

int table_file__make(const struct file_stamp *stamp, const struct unwind_table_image *image,
		     void **data, size_t *size)
{
	struct file_header *header = calloc(1, sizeof(*header) + image->size);

	if (!header)
		return -ENOMEM;
	memcpy(header->magic, MAGIC, sizeof(MAGIC));
	header->header_size = sizeof(*header);
	header->maker = TABLE_MAKER;
	header->stamp = *stamp;
	header->image = *image;
	header->image.bytes = NULL;
	memcpy(header + 1, image->bytes, image->size);
	header->crc = crc_of(header, header + 1, image->size);
	*data = header;
	*size = sizeof(*header) + image->size;
	return 0;
}

static bool header_is_good(const struct file_header *h, size_t size, const struct file_stamp *stamp)
{
	return !memcmp(h->magic, MAGIC, sizeof(MAGIC)) && h->header_size == sizeof(*h) &&
	       h->maker == TABLE_MAKER && !memcmp(&h->stamp, stamp, sizeof(*stamp)) &&
	       h->image.size == size - sizeof(*h);
}

int table_file__read(int fd, size_t size, const struct file_stamp *stamp, size_t limit,
		     struct unwind_table_image *image)
{
	_cleanup_free_ void *bytes = NULL;
	struct file_header header;
	int err;

	if (size <= sizeof(header))
		return -EBADMSG;
	err = pread_exactly(fd, &header, sizeof(header), 0);
	if (err)
		return err;
	if (!header_is_good(&header, size, stamp))
		return -EBADMSG;
	if (header.image.size > limit)
		return -EFBIG;
	if (posix_memalign(&bytes, UNWIND_IMAGE_ALIGNMENT, header.image.size))
		return -ENOMEM;
	err = pread_exactly(fd, bytes, header.image.size, sizeof(header));
	if (err)
		return err;
	if (crc_of(&header, bytes, header.image.size) != header.crc)
		return -EBADMSG;
	header.image.bytes = bytes;
	if (unwind_table_image__check(&header.image))
		return -EBADMSG;
	bytes = NULL;
	*image = header.image;
	return 0;
}
