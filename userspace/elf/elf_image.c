/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections of an ELF file, copied and inflated into our memory, or into a sealed memfd.
 *
 * libdw would inflate every debug section when it opens a file, and keep reading a file that its
 * owner may truncate. So libdw gets only this image of the requested sections, which libelf reads
 * in place.
 *
 * A claimed size costs only address space: pages are allocated when they are written. The sum of
 * the claims is checked against the limit before anything is inflated.
 *
 * The layout: ELF header, section headers, section names, and the sections, each aligned. The class
 * is always 64-bit, because no debug section depends on it; the byte order is the file's.
 */
#include "elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/minmax.h"
#include "elf/elf_file_private.h"
#include "elf/elf_sections.h"

#define SECTION_ALIGNMENT 64
#define NAME_MAX_LENGTH	  32
/* No deflate stream grows by more than a factor of 1032. */
#define DEFLATE_FACTOR 1032
#define DEFLATE_SLACK  1024
#define ZDEBUG_HEADER  12
#define NAMES_NAME     ".shstrtab"

enum coding { CODING_PLAIN, CODING_ZLIB, CODING_OTHER };

struct source {
	const char *name;
	uint64_t offset, stored; /* in the file */
	uint64_t claimed;	 /* size when inflated, as the file claims */
	enum coding coding;
	bool cut; /* the file does not hold all of it */
};

/* ---- what there is --------------------------------------------------------------------------- */

/* The old format: ".zdebug_x" begins with "ZLIB" and the inflated size, big-endian. */
static int read_zdebug_header(const struct elf_file *file, struct source *s)
{
	unsigned char header[ZDEBUG_HEADER];
	ssize_t got;

	if (s->stored < sizeof(header))
		return -EBADMSG;
	got = elf_file__read(file, header, sizeof(header), s->offset);
	if (got < 0)
		return got;
	if (got < (ssize_t)sizeof(header) || memcmp(header, "ZLIB", 4))
		return -EBADMSG;
	s->coding = CODING_ZLIB;
	memcpy(&s->claimed, header + 4, sizeof(s->claimed));
	s->claimed = be64toh(s->claimed);
	s->offset += sizeof(header);
	s->stored -= sizeof(header);
	return 0;
}

static int read_compression_header(const struct elf_file *file, struct source *s)
{
	union {
		Elf32_Chdr narrow;
		Elf64_Chdr wide;
	} header;
	size_t size = file->is_64 ? sizeof(header.wide) : sizeof(header.narrow);
	Elf_Data data = {
		.d_buf = &header, .d_size = size, .d_type = ELF_T_CHDR, .d_version = EV_CURRENT};
	uint32_t type;
	ssize_t got;

	if (s->stored < size)
		return -EBADMSG;
	got = elf_file__read(file, &header, size, s->offset);
	if (got < (ssize_t)size)
		return got < 0 ? (int)got : -EBADMSG;
	if (!(file->is_64 ? elf64_xlatetom : elf32_xlatetom)(&data, &data, file->encoding))
		return -EBADMSG;
	type = file->is_64 ? header.wide.ch_type : header.narrow.ch_type;
	s->claimed = file->is_64 ? header.wide.ch_size : header.narrow.ch_size;
	s->coding = type == ELFCOMPRESS_ZLIB ? CODING_ZLIB : CODING_OTHER;
	if (s->coding == CODING_ZLIB) {
		s->offset += size;
		s->stored -= size;
	} else if (s->claimed < s->stored) { /* copied as it is */
		s->claimed = s->stored;
	}
	return 0;
}

/* ".debug_info" as ".zdebug_info". */
static const char *old_name(const char *name, char *buffer, size_t size)
{
	size_t length = strlen(name);

	if (name[0] != '.' || length + 2 > size)
		return name;
	memcpy(buffer, ".z", 2);
	memcpy(buffer + 2, name + 1, length);
	return buffer;
}

/* 0; -ENOENT: no such section, or empty; -EBADMSG: damaged; -ENOMEM; -EIO. */
static int find_source(struct elf_file *file, const char *name, struct source *source)
{
	char old[NAME_MAX_LENGTH];
	struct elf_section section;
	struct source s = {.name = name};
	bool is_old = false;
	int err = elf_file__find_section(file, name, &section);

	if (err == -ENOENT) {
		is_old = true;
		err = elf_file__find_section(file, old_name(name, old, sizeof(old)), &section);
	}
	if (err)
		return err;
	if (section.type == SHT_NOBITS || !section.size)
		return -ENOENT;
	s.offset = section.offset;
	s.stored = s.claimed = elf_file__available(file, section.offset, section.size);
	s.cut = s.stored < section.size;
	if (is_old)
		err = read_zdebug_header(file, &s);
	else if (section.flags & SHF_COMPRESSED)
		err = read_compression_header(file, &s);
	if (err)
		return err;
	if (s.coding == CODING_ZLIB && s.claimed > s.stored * DEFLATE_FACTOR + DEFLATE_SLACK)
		return -EBADMSG;
	*source = s;
	return 0;
}

static uint64_t inflated_size(const struct elf_file *file, const Elf64_Shdr *section)
{
	struct source s = {.offset = section->sh_offset};

	s.stored = s.claimed = elf_file__available(file, section->sh_offset, section->sh_size);
	if (section->sh_flags & SHF_COMPRESSED)
		(void)read_compression_header(file, &s);
	else
		(void)read_zdebug_header(file, &s);
	return s.claimed ? s.claimed : s.stored;
}

uint64_t elf_file__debug_size(struct elf_file *file)
{
	uint64_t total = 0;

	if (elf_file__load_sections(file))
		return 0;
	for (size_t i = 0; i < file->sections.count; i++) {
		const Elf64_Shdr *section = &file->sections.data[i];

		if (section->sh_type == SHT_PROGBITS && !(section->sh_flags & SHF_ALLOC))
			total = saturating_add_u64(total, inflated_size(file, section));
	}
	return total;
}

/* Finds all that exist. Sets *damaged if one of them is. */
static int find_sources(struct elf_file *file, const char *const *names, size_t count,
			struct source *sources, size_t *found, uint64_t *claimed, bool *damaged)
{
	for (size_t i = 0; i < count && *found < ELF_IMAGE_SECTIONS; i++) {
		int err = find_source(file, names[i], &sources[*found]);

		if (!err)
			*claimed = saturating_add_u64(*claimed, sources[(*found)++].claimed);
		else if (err == -EBADMSG)
			*damaged = true;
		else if (err != -ENOENT)
			return err;
	}
	if (!*found)
		return *damaged ? -EBADMSG : -ENODATA;
	return 0;
}

/* ---- the copy -------------------------------------------------------------------------------- */

/* Headers of `count` sections, the empty one and the names. */
static size_t headers_size(size_t count)
{
	return align_up(sizeof(Elf64_Ehdr) + (count + 2) * sizeof(Elf64_Shdr) +
				(count + 2) * NAME_MAX_LENGTH,
			SECTION_ALIGNMENT);
}

static int make_file(struct elf_image *image)
{
	image->fd = memfd_create("elf_image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (image->fd < 0)
		return -errno;
	if (ftruncate(image->fd, image->size))
		return errno == EFBIG ? -ENOMEM : -errno;
	return 0;
}

/* A copy mostly takes time for new pages, so huge pages are requested. */
static int map_image(struct elf_image *image, const struct source *sources, size_t count,
		     uint64_t claimed, bool as_file)
{
	size_t at = headers_size(count);
	void *bytes;
	int err;

	image->size = at + claimed + count * SECTION_ALIGNMENT;
	err = as_file ? make_file(image) : 0;
	if (err)
		return err;
	bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
		     as_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, image->fd, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	if (!as_file)
		madvise(bytes, image->size, MADV_HUGEPAGE);
	image->bytes = bytes;
	for (size_t i = 0; i < count; i++) {
		image->sections[i].name = sources[i].name;
		image->sections[i].data = image->bytes + at;
		at = align_up(at + sources[i].claimed, SECTION_ALIGNMENT);
	}
	image->count = count;
	return 0;
}

/* Sets the section's size to the bytes read; damage is no error. */
static int read_source(struct elf_image *image, const struct elf_file *file, const struct source *s,
		       struct elf_image_section *section)
{
	uint64_t inflated;
	ssize_t got;
	int err;

	image->damaged |= s->cut;
	if (s->coding == CODING_ZLIB) {
		err = inflate_at(file->fd, file->base + s->offset, s->stored, section->data,
				 s->claimed, &inflated);
		section->size = inflated;
		image->inflated += inflated;
		image->damaged |= err || inflated < s->claimed;
		return err == -ENOMEM ? err : 0;
	}
	got = elf_file__read(file, section->data, s->stored, s->offset);
	if (got < 0)
		return got;
	image->damaged |= (uint64_t)got < s->stored;
	section->size = got;
	section->flags = s->coding == CODING_OTHER ? SHF_COMPRESSED : 0;
	return 0;
}

int elf_image__load(struct elf_file *file, const char *const *names, size_t count, uint64_t limit,
		    bool as_file, struct elf_image **image)
{
	struct source sources[ELF_IMAGE_SECTIONS];
	struct elf_image *im;
	uint64_t claimed = 0;
	size_t found = 0;
	bool damaged = false;
	int err = find_sources(file, names, count, sources, &found, &claimed, &damaged);

	if (err)
		return err;
	if (claimed > limit || claimed > SIZE_MAX / 2)
		return -EFBIG;
	im = calloc(1, sizeof(*im));
	if (!im)
		return -ENOMEM;
	im->fd = -1;
	im->encoding = file->encoding;
	im->type = file->header.e_type;
	im->machine = file->header.e_machine;
	im->damaged = damaged;
	err = map_image(im, sources, found, claimed, as_file);
	for (size_t i = 0; i < found && !err; i++)
		err = read_source(im, file, &sources[i], &im->sections[i]);
	return finish_new(err, im, elf_image__free, image);
}

void elf_image__free(struct elf_image *image)
{
	if (!image)
		return;
	if (image->bytes)
		munmap(image->bytes, image->size);
	cleanup_close(&image->fd);
	free(image);
}

struct elf_image_section *elf_image__section(struct elf_image *image, const char *name)
{
	for (size_t i = 0; i < image->count; i++) {
		if (!strcmp(image->sections[i].name, name))
			return &image->sections[i];
	}
	return NULL;
}

/* ---- the headers ----------------------------------------------------------------------------- */

/* Appends a name; returns its offset. */
static size_t add_name(char *names, size_t *used, const char *name)
{
	size_t at = *used, length = strnlen(name, NAME_MAX_LENGTH - 1);

	memcpy(names + at, name, length);
	names[at + length] = '\0';
	*used = at + length + 1;
	return at;
}

static bool to_file_order(const struct elf_image *image, void *records, size_t size, Elf_Type type)
{
	Elf_Data data = {.d_buf = records, .d_size = size, .d_type = type, .d_version = EV_CURRENT};

	return elf64_xlatetof(&data, &data, image->encoding);
}

/* Maps it privately first: F_SEAL_WRITE fails while a shared writable mapping exists. */
static int seal_image(struct elf_image *image)
{
	void *bytes = mmap(image->bytes, image->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_FIXED, image->fd, 0);

	if (bytes == MAP_FAILED)
		return -ENOMEM;
	if (fcntl(image->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	return 0;
}

int elf_image__finish(struct elf_image *image, void **bytes, size_t *size)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, image->encoding,
			    EV_CURRENT},
		.e_type = image->type,
		.e_machine = image->machine,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = image->count + 2,
		.e_shstrndx = image->count + 1,
	};
	Elf64_Shdr sections[ELF_IMAGE_SECTIONS + 2] = {};
	size_t table = header.e_shnum * sizeof(*sections), used = 0;
	char *names = (char *)image->bytes + sizeof(header) + table;

	add_name(names, &used, "");
	for (size_t i = 0; i < image->count; i++) {
		sections[i + 1] = (Elf64_Shdr){
			.sh_name = add_name(names, &used, image->sections[i].name),
			.sh_type = SHT_PROGBITS,
			.sh_flags = image->sections[i].flags,
			.sh_offset = image->sections[i].data - image->bytes,
			.sh_size = image->sections[i].size,
			.sh_addralign = image->sections[i].flags & SHF_COMPRESSED ? 8 : 1,
		};
	}
	sections[image->count + 1] = (Elf64_Shdr){
		.sh_name = add_name(names, &used, NAMES_NAME),
		.sh_type = SHT_STRTAB,
		.sh_offset = (unsigned char *)names - image->bytes,
		.sh_size = used,
		.sh_addralign = 1,
	};
	if (!to_file_order(image, &header, sizeof(header), ELF_T_EHDR) ||
	    !to_file_order(image, sections, table, ELF_T_SHDR))
		return -EBADMSG;
	memcpy(image->bytes, &header, sizeof(header));
	memcpy(image->bytes + sizeof(header), sections, table);
	*bytes = image->bytes;
	*size = image->size;
	return image->fd < 0 ? 0 : seal_image(image);
}
