/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small ELF file in our own memory, made of some sections of another one: compressed ones inflated, all others left
 * out. The file's owner cannot change the copy.
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
	uint64_t flags;	     /* SHF_COMPRESSED: by an algorithm that is not zlib, as in the file */
};

struct elf_image {
	unsigned char encoding; /* ELFDATA2LSB, ELFDATA2MSB */
	uint16_t type, machine;
	int fd; /* of the file in memory; -1: it was not loaded as a file */
	unsigned char *bytes;
	size_t size;
	size_t count;
	struct elf_image_section sections[ELF_IMAGE_SECTIONS];
	uint64_t inflated; /* bytes that were compressed */
	bool damaged;	   /* sections were cut */
};

/*
 * Read the sections of these names (which must live as long as the image); ".zdebug_x" stands for ".debug_x". A
 * damaged section is cut to its readable part. -ENODATA: none of them is there; -EFBIG: together they claim more than
 * `limit`, nothing was inflated; -EBADMSG; -ENOMEM; -EIO. `as_file`: it is to have a descriptor, which takes longer.
 */
int elf_image__load(struct elf_file *file, const char *const *names, size_t count, uint64_t limit,
		    bool as_file, struct elf_image **image);
void elf_image__free(struct elf_image *image);

/* NULL: the file does not have it. */
struct elf_image_section *elf_image__section(struct elf_image *image, const char *name);

/*
 * Writes the headers and seals the file, if there is one: the image as an ELF file that cannot be changed. 0,
 * -EBADMSG, …
 */
int elf_image__finish(struct elf_image *image, void **bytes, size_t *size);

#endif
