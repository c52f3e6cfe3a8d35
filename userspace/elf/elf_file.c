/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers and segments of an untrusted ELF file.
 *
 * libelf itself would allocate the size that a header claims before it checks the file. So
 * elf_file__read_records() reads as many records as the file holds, and libelf only converts their
 * byte order. 32-bit records are then widened in place: all other code uses 64-bit forms.
 *
 * If the file is truncated meanwhile, tables are cut to the bytes that exist.
 */
#include "elf/elf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_build_id.h"
#include "elf/elf_file_private.h"
#include "elf/elf_symbols.h"

#define MAX_SEGMENTS 4096
#define MAX_SECTIONS (1 << 18)

size_t elf_file__record_size(const struct elf_file *file, Elf_Type type)
{
	switch (type) {
	case ELF_T_EHDR:
		return file->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	case ELF_T_PHDR:
		return file->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	case ELF_T_SHDR:
		return file->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	case ELF_T_SYM:
		return file->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	case ELF_T_DYN:
		return file->is_64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	default:
		return sizeof(Elf32_Word);
	}
}

/* Fields have the same names in both classes. */
#define COPY(field) .field = narrow.field
#define DEFINE_WIDEN(name, RECORD, ...)                                                            \
	static Elf64_##RECORD widen_##name(const void *raw)                                        \
	{                                                                                          \
		Elf32_##RECORD narrow;                                                             \
                                                                                                   \
		memcpy(&narrow, raw, sizeof(narrow));                                              \
		return (Elf64_##RECORD){__VA_ARGS__};                                              \
	}

DEFINE_WIDEN(segment, Phdr, COPY(p_type), COPY(p_flags), COPY(p_offset), COPY(p_vaddr),
	     COPY(p_paddr), COPY(p_filesz), COPY(p_memsz), COPY(p_align))
DEFINE_WIDEN(section, Shdr, COPY(sh_name), COPY(sh_type), COPY(sh_flags), COPY(sh_addr),
	     COPY(sh_offset), COPY(sh_size), COPY(sh_link), COPY(sh_info), COPY(sh_addralign),
	     COPY(sh_entsize))
DEFINE_WIDEN(symbol, Sym, COPY(st_name), COPY(st_info), COPY(st_other), COPY(st_shndx),
	     COPY(st_value), COPY(st_size))
DEFINE_WIDEN(dynamic, Dyn, COPY(d_tag), COPY(d_un.d_val))
DEFINE_WIDEN(numbers, Ehdr, COPY(e_type), COPY(e_machine), COPY(e_version), COPY(e_entry),
	     COPY(e_phoff), COPY(e_shoff), COPY(e_flags), COPY(e_ehsize), COPY(e_phentsize),
	     COPY(e_phnum), COPY(e_shentsize), COPY(e_shnum), COPY(e_shstrndx))

static Elf64_Ehdr widen_header(const void *raw)
{
	Elf64_Ehdr wide = widen_numbers(raw);

	memcpy(wide.e_ident, raw, EI_NIDENT);
	return wide;
}

/* In place, from the last to the first: a wide record overwrites only narrow ones behind it. */
static void widen_records(Elf_Type type, void *records, size_t size, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		const char *raw = (const char *)records + i * size;

		if (type == ELF_T_EHDR)
			((Elf64_Ehdr *)records)[i] = widen_header(raw);
		else if (type == ELF_T_PHDR)
			((Elf64_Phdr *)records)[i] = widen_segment(raw);
		else if (type == ELF_T_SHDR)
			((Elf64_Shdr *)records)[i] = widen_section(raw);
		else if (type == ELF_T_SYM)
			((Elf64_Sym *)records)[i] = widen_symbol(raw);
		else if (type == ELF_T_DYN)
			((Elf64_Dyn *)records)[i] = widen_dynamic(raw);
	}
}

uint64_t elf_file__available(const struct elf_file *file, uint64_t offset, uint64_t size)
{
	uint64_t left = offset < file->size ? file->size - offset : 0;

	return min_u64(size, left);
}

ssize_t elf_file__read_window(const struct elf_file *file, struct elf_window *w, void *buffer,
			      size_t size, uint64_t offset)
{
	uint64_t at;

	if (__builtin_add_overflow(file->base, offset, &at) || at > INT64_MAX)
		return 0;
	if (!w)
		return pread_full(file->fd, buffer, size, at);
	if (at < w->start || at - w->start > w->size || w->size - (at - w->start) < size) {
		ssize_t got = w->reads ? pread_full(file->fd, w->bytes, sizeof(w->bytes), at) : 0;

		w->reads -= w->reads > 0;
		w->start = at;
		w->size = got < 0 ? 0 : got;
		if (got < 0)
			return got;
	}
	size = min_u64(size, w->size - (at - w->start));
	memcpy(buffer, w->bytes + (at - w->start), size);
	return size;
}

ssize_t elf_file__read(const struct elf_file *file, void *buffer, size_t size, uint64_t offset)
{
	return elf_file__read_window(file, file->window, buffer, size, offset);
}

ssize_t elf_file__read_records(const struct elf_file *file, uint64_t offset, Elf_Type type,
			       void *records, size_t count)
{
	size_t size = elf_file__record_size(file, type);
	Elf_Data data = {.d_buf = records, .d_type = type, .d_version = EV_CURRENT};
	uint64_t available = elf_file__available(file, offset, UINT64_MAX) / size;
	ssize_t got;

	count = min_u64(count, available);
	if (!count)
		return 0;
	got = elf_file__read(file, records, count * size, offset);
	if (got < (ssize_t)size)
		return got < 0 ? got : 0;
	count = got / size;
	data.d_size = count * size;
	if (!(file->is_64 ? elf64_xlatetom : elf32_xlatetom)(&data, &data, file->encoding))
		return -EBADMSG;
	if (!file->is_64)
		widen_records(type, records, size, count);
	return count;
}

int elf_file__read_header(struct elf_file *file)
{
	unsigned char ident[EI_NIDENT];
	ssize_t got;

	elf_version(EV_CURRENT);
	got = elf_file__read(file, ident, sizeof(ident), 0);
	if (got < 0)
		return got;
	if (got < (ssize_t)sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if ((ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
	    (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
		return -EBADMSG;
	file->is_64 = ident[EI_CLASS] == ELFCLASS64;
	file->encoding = ident[EI_DATA];
	got = elf_file__read_records(file, 0, ELF_T_EHDR, &file->header, 1);
	if (got < 1)
		return got < 0 ? got : -ENOEXEC;
	return 0;
}

int elf_file__read_first_section(const struct elf_file *file, Elf64_Shdr *section)
{
	ssize_t got;

	if (!file->header.e_shoff ||
	    file->header.e_shentsize != elf_file__record_size(file, ELF_T_SHDR))
		return -ENOENT;
	got = elf_file__read_records(file, file->header.e_shoff, ELF_T_SHDR, section, 1);
	if (got < 1)
		return got < 0 ? got : -ENOENT;
	return 0;
}

/* It has bytes in the file, and its ranges do not wrap around. */
static bool is_load(const Elf64_Phdr *s)
{
	uint64_t end;

	return s->p_type == PT_LOAD && s->p_filesz &&
	       !__builtin_add_overflow(s->p_offset, s->p_filesz, &end) &&
	       !__builtin_add_overflow(s->p_vaddr, s->p_filesz, &end);
}

/* Executable PT_LOADs have a list of their own because they are looked up often. */
static int choose_code(struct elf_file *file)
{
	int err = 0;

	for (size_t i = 0; i < file->segments.count && !err; i++) {
		const Elf64_Phdr *s = &file->segments.data[i];

		if (!is_load(s) || !(s->p_flags & PF_X))
			continue;
		if (file->code.count < MAX_CODE_SEGMENTS)
			err = vec_push(&file->code, *s);
		else
			file->left = true;
	}
	return err;
}

static int load_segments(struct elf_file *file)
{
	const Elf64_Ehdr *header = &file->header;
	size_t size = elf_file__record_size(file, ELF_T_PHDR), count = header->e_phnum;
	Elf64_Shdr first;
	ssize_t got;

	if (!count || !header->e_phoff || header->e_phentsize != size)
		return 0;
	if (count == PN_XNUM && !elf_file__read_first_section(file, &first))
		count = first.sh_info;
	file->left |= count > MAX_SEGMENTS;
	count = min_u64(count, MAX_SEGMENTS);
	count = elf_file__available(file, header->e_phoff, count * size) / size;
	if (vec_reserve(&file->segments, count))
		return -ENOMEM;
	got = elf_file__read_records(file, header->e_phoff, ELF_T_PHDR, file->segments.data, count);
	if (got < 0)
		return got;
	file->segments.count = got;
	return choose_code(file);
}

int elf_file__load_sections(struct elf_file *file)
{
	const Elf64_Ehdr *header = &file->header;
	size_t size = elf_file__record_size(file, ELF_T_SHDR);
	uint64_t wanted = header->e_shnum, count;
	Elf64_Shdr first;
	ssize_t got;

	if (file->sections_read)
		return 0;
	if (!header->e_shoff) {
		file->sections_read = true;
		return 0;
	}
	got = elf_file__read_first_section(file, &first);
	if (got == -ENOENT) {
		file->sections_read = file->sections_damaged = true;
		return 0;
	}
	if (got)
		return got;
	if (!wanted)
		wanted = first.sh_size;
	file->left |= wanted > MAX_SECTIONS;
	count = min_u64(wanted, MAX_SECTIONS);
	count = elf_file__available(file, header->e_shoff, count * size) / size;
	if (vec_reserve(&file->sections, count))
		return -ENOMEM;
	got = elf_file__read_records(file, header->e_shoff, ELF_T_SHDR, file->sections.data, count);
	if (got < 0)
		return got;
	file->sections.count = got;
	file->sections_read = true;
	file->sections_damaged = (uint64_t)got < wanted;
	return 0;
}

bool elf_file__left(const struct elf_file *file)
{
	return file->left;
}

bool elf_file__is_useful(const struct elf_file *file, size_t segments)
{
	const Elf64_Ehdr *header = &file->header;
	Elf64_Shdr first;

	return segments || (!header->e_phnum && !header->e_shoff) ||
	       !elf_file__read_first_section(file, &first);
}

int elf_file__open_at(int fd, uint64_t base, struct elf_file **file)
{
	struct elf_file *f;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->fd = fd;
	f->base = base;
	f->size = (uint64_t)st.st_size > base ? st.st_size - base : 0;
	err = elf_file__read_header(f) ?: load_segments(f);
	if (!err && !elf_file__is_useful(f, f->segments.count))
		err = -EBADMSG;
	return finish_new(err, f, elf_file__free, file);
}

void elf_file__detach(struct elf_file *file)
{
	file->fd = -1;
}

int elf_file__open(int fd, struct elf_file **file)
{
	return elf_file__open_at(fd, 0, file);
}

void elf_file__free(struct elf_file *file)
{
	if (!file)
		return;
	vec_free(&file->segments);
	vec_free(&file->code);
	vec_free(&file->sections);
	elf_strings__fini(&file->symbol_names);
	elf_strings__fini(&file->dynamic_names);
	free(file->section_names.data);
	free(file->frames.data);
	free(file);
}

int elf_file__build_id(struct elf_file *file, uint8_t *id, size_t size)
{
	int result = elf_read_build_id(file->fd, file->base, id, size);

	/* it has changed since it was opened */
	return result == -ENOEXEC || result == -EBADMSG ? -ENOENT : result;
}

static bool segment_covers(const Elf64_Phdr *s, uint64_t position, bool in_file)
{
	uint64_t start = in_file ? s->p_offset : s->p_vaddr;

	return position >= start && position - start < s->p_filesz;
}

static const Elf64_Phdr *find_code(const struct elf_file *file, uint64_t position, bool in_file)
{
	return find_first(file->code.data, file->code.count, segment,
			  segment_covers(segment, position, in_file));
}

/* The PT_LOAD that covers a position. An executable one comes first: callers look up code. */
static const Elf64_Phdr *find_load(const struct elf_file *file, uint64_t position, bool in_file)
{
	const Elf64_Phdr *code = find_code(file, position, in_file);

	for (size_t i = 0; i < file->segments.count && !code; i++) {
		const Elf64_Phdr *s = &file->segments.data[i];

		if (is_load(s) && segment_covers(s, position, in_file))
			return s;
	}
	return code;
}

int elf_file__address_of_offset(const struct elf_file *file, uint64_t offset, uint64_t *address)
{
	const Elf64_Phdr *s = find_load(file, offset, true);

	if (!s)
		return -ENOENT;
	*address = s->p_vaddr + (offset - s->p_offset);
	return 0;
}

int elf_file__each_load(const struct elf_file *file, elf_load_fn visit, void *context)
{
	int err = 0;

	for (size_t i = 0; i < file->code.count && !err; i++) {
		const Elf64_Phdr *s = &file->code.data[i];

		err = visit(context, s->p_offset, s->p_filesz, s->p_vaddr);
	}
	for (size_t i = 0; i < file->segments.count && !err; i++) {
		const Elf64_Phdr *s = &file->segments.data[i];

		if (is_load(s))
			err = visit(context, s->p_offset, s->p_filesz, s->p_vaddr);
	}
	return err;
}

uint64_t elf_file__segment_end(const struct elf_file *file, uint64_t offset)
{
	const Elf64_Phdr *s = find_load(file, offset, true);

	return s ? s->p_offset + s->p_filesz : 0;
}

int elf_file__offset_of_address(const struct elf_file *file, uint64_t address, uint64_t *offset)
{
	const Elf64_Phdr *s = find_load(file, address, false);

	if (!s)
		return -ENOENT;
	*offset = s->p_offset + (address - s->p_vaddr);
	return 0;
}

/* The executable segment that begins first behind `offset` and before `end`. */
static const Elf64_Phdr *next_code(const struct elf_file *file, uint64_t offset, uint64_t end)
{
	const Elf64_Phdr *next = NULL;

	for (size_t i = 0; i < file->code.count; i++) {
		const Elf64_Phdr *s = &file->code.data[i];

		if (s->p_offset > offset && s->p_offset < end &&
		    (!next || s->p_offset < next->p_offset))
			next = s;
	}
	return next;
}

int elf_file__code_at(const struct elf_file *file, uint64_t offset, uint64_t end,
		      struct elf_code *code)
{
	const Elf64_Phdr *s = find_code(file, offset, true), *next;

	if (!s)
		s = next_code(file, offset, end);
	if (!s)
		s = find_load(file, offset, true);
	if (!s)
		return -ENOENT;
	code->address = s->p_vaddr + (offset - s->p_offset);
	/* bytes between two segments, the rest of a page, belong to the first */
	next = next_code(file, max_u64(s->p_offset, offset), end);
	code->end = next ? next->p_offset : end;
	/* if another segment covers the end of this one, the run ends there */
	if (s->p_offset + s->p_filesz < code->end &&
	    find_code(file, s->p_offset + s->p_filesz, true))
		code->end = s->p_offset + s->p_filesz;
	return 0;
}

ssize_t elf_file__read_at(const struct elf_file *file, uint64_t address, void *bytes, size_t size)
{
	const Elf64_Phdr *s = find_load(file, address, false);
	uint64_t within;

	if (!s)
		return -ENOENT;
	within = address - s->p_vaddr;
	if (size > s->p_filesz - within)
		size = s->p_filesz - within;
	return elf_file__read(file, bytes, size, s->p_offset + within);
}

ssize_t elf_file__read_section(const struct elf_file *file, const struct elf_section *section,
			       uint64_t offset, void *bytes, size_t size)
{
	uint64_t at;

	if (section->type == SHT_NOBITS || offset > section->size ||
	    __builtin_add_overflow(section->offset, offset, &at))
		return 0;
	if (size > section->size - offset)
		size = section->size - offset;
	return elf_file__read(file, bytes, size, at);
}

uint64_t elf_file__entry(const struct elf_file *file)
{
	return file->header.e_entry;
}

bool elf_file__is_x86_64(const struct elf_file *file)
{
	return file->is_64 && file->encoding == ELFDATA2LSB && file->header.e_machine == EM_X86_64;
}

bool elf_file__is_arm64(const struct elf_file *file)
{
	return file->is_64 && file->encoding == ELFDATA2LSB && file->header.e_machine == EM_AARCH64;
}

bool elf_file__is_relocatable(const struct elf_file *file)
{
	return file->header.e_type == ET_REL;
}

bool elf_file__is_program(const struct elf_file *file)
{
	return file->header.e_type == ET_EXEC;
}
