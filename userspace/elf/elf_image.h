/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file in our own memory with some sections of another one, inflated. The file's owner
 * cannot change the copy.
 */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

#define ELF_IMAGE_SECTIONS 64

struct elf_image_section {
	const char *name;
	unsigned char *data; /* may be written to before elf_image__finish() */
	uint64_t size;	     /* may be lowered before elf_image__finish() */
	uint64_t flags;	     /* SHF_COMPRESSED: not zlib, copied as it is in the file */
};

struct elf_image {
	unsigned char encoding; /* ELFDATA2LSB, ELFDATA2MSB */
	uint16_t type, machine;
	int fd; /* memfd; -1: not loaded as a file */
	unsigned char *bytes;
	size_t size;
	size_t count;
	struct elf_image_section sections[ELF_IMAGE_SECTIONS];
	uint64_t inflated; /* bytes that were compressed */
	bool damaged;	   /* sections were cut */
};

/*
 * Reads the sections with these names, which must outlive the image; ".zdebug_x" is read for a
 * missing ".debug_x". A damaged section is cut to its readable part. `as_file`: with a descriptor;
 * slower. -ENODATA: no such section; -EFBIG: they claim more than `limit`; -EBADMSG; -ENOMEM; -EIO.
 */
int elf_image__load(struct elf_file *file, const char *const *names, size_t count, uint64_t limit,
		    bool as_file, struct elf_image **image);
void elf_image__free(struct elf_image *image);

/* NULL: the file does not have it. */
struct elf_image_section *elf_image__section(struct elf_image *image, const char *name);

/* Writes the headers, seals the memfd if there is one, returns the ELF file. 0, -EBADMSG, … */
int elf_image__finish(struct elf_image *image, void **bytes, size_t *size);

struct elf_file;

/* Inflated size of the sections that are not loaded (mostly DWARF), as claimed; saturates. */
uint64_t elf_file__debug_size(struct elf_file *file);

#endif
