/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line program of a unit (DWARF 2 to 5): rows, and names of files.
 *
 * libdw's dwarf_getsrclines() keeps 80 bytes a row until its handle ends, and is several times as
 * slow. A row here has 16 bytes. The order is libdw's: by address; at one address rows that end a
 * sequence, then the others as in the program. Names stay in the sections, which stay in memory.
 */
#include "symbolize/dwarf_lines.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_image.h"
#include "symbolize/dwarf_private.h"

#define ROWS_LEAST  (1u << 20) /* that any program may have */
#define ROW_MEMORY  64	       /* bytes, at most, while they are sorted */
#define ENTRIES_MAX (1u << 20)
#define FORMATS_MAX 16

/* A format of DWARF 5's entries. */
struct format {
	uint64_t content, form;
};

struct reading {
	struct elf_image *image;
	struct line_program *program;
	bool has_files; /* those of the header, from an earlier reading, with names in memory */
	struct cursor c;
	unsigned int version, offset_size;
	const unsigned char *opcodes; /* where they begin */
	VEC(const char *) directories;
	unsigned int minimum_length, operations, line_range, opcode_base;
	int line_base;
	const unsigned char *lengths; /* of opcodes, from 1 on */
	size_t rows_max, sequence;    /* row that begins it */
	bool unsorted;
	/* the state machine */
	uint64_t address, operation, file, line, column;
};

/* ---- names ----------------------------------------------------------------------------------- */

static const char *string_of_section(struct reading *r, const char *name)
{
	struct elf_image_section *s = elf_image__section(r->image, name);
	uint64_t offset = cursor__fixed(&r->c, r->offset_size);

	return s && !(s->flags & SHF_COMPRESSED) && offset < s->size &&
			       memchr(s->data + offset, '\0', s->size - offset)
		       ? (const char *)s->data + offset
		       : NULL;
}

/* A field of an entry: its text, or its number. */
static const char *take_field(struct reading *r, uint64_t form, uint64_t *number)
{
	switch (form) {
	case DW_FORM_string:
		return cursor__string(&r->c);
	case DW_FORM_line_strp:
		return string_of_section(r, ".debug_line_str");
	case DW_FORM_strp:
		return string_of_section(r, ".debug_str");
	case DW_FORM_udata:
		*number = cursor__uleb(&r->c);
		return NULL;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
		*number = cursor__fixed(&r->c, form == DW_FORM_data1   ? 1
					       : form == DW_FORM_data2 ? 2
					       : form == DW_FORM_data4 ? 4
								       : 8);
		return NULL;
	case DW_FORM_data16:
		cursor__skip(&r->c, 16);
		return NULL;
	case DW_FORM_block:
		cursor__skip(&r->c, cursor__uleb(&r->c));
		return NULL;
	default:
		r->c.bad = true;
		return NULL;
	}
}

static int add_file(struct reading *r, const char *name, uint64_t directory,
		    const unsigned char *md5)
{
	if (!name || directory >= r->directories.count)
		return -EBADMSG;
	return r->has_files ? 0
			    : vec_push(&r->program->files,
				       (struct line_file){r->directories.data[directory], name,
							  NULL, md5});
}

/* Directories or files of DWARF 5. */
static int take_entries(struct reading *r, bool files)
{
	struct format formats[FORMATS_MAX];
	uint64_t format_count = cursor__fixed(&r->c, 1), count;
	int err = 0;

	if (format_count > FORMATS_MAX)
		return -EFBIG;
	for (size_t i = 0; i < format_count; i++) {
		formats[i].content = cursor__uleb(&r->c);
		formats[i].form = cursor__uleb(&r->c);
	}
	count = cursor__uleb(&r->c);
	if (r->c.bad || (count && !format_count))
		return -EBADMSG;
	if (count > ENTRIES_MAX)
		return -EFBIG;
	for (; count && !err && !r->c.bad; count--) {
		const char *path = NULL;
		const unsigned char *md5 = NULL;
		uint64_t directory = 0;

		for (size_t i = 0; i < format_count; i++) {
			uint64_t number = 0;
			const unsigned char *start = r->c.at;
			const char *text = take_field(r, formats[i].form, &number);

			if (formats[i].content == DW_LNCT_path)
				path = text;
			else if (formats[i].content == DW_LNCT_directory_index)
				directory = number;
			else if (formats[i].content == DW_LNCT_MD5 &&
				 formats[i].form == DW_FORM_data16 && !r->c.bad)
				md5 = start;
		}
		err = !path   ? -EBADMSG
		      : files ? add_file(r, path, directory, md5)
			      : vec_push(&r->directories, path);
	}
	return err;
}

/* Name, directory, time and length. */
static int take_old_file(struct reading *r)
{
	const char *name = cursor__string(&r->c);
	uint64_t directory = cursor__uleb(&r->c);

	cursor__uleb(&r->c);
	cursor__uleb(&r->c);
	return r->c.bad ? -EBADMSG : add_file(r, name, directory, NULL);
}

/* Before DWARF 5: directory 0 is that of the compilation, and file 0 is none. */
static int take_old_names(struct reading *r, const char *compilation_directory)
{
	int err = vec_push(&r->directories, compilation_directory) ?: add_file(r, "", 0, NULL);

	while (!err && r->c.at < r->c.end && *r->c.at) {
		const char *text = cursor__string(&r->c);

		err = text ? vec_push(&r->directories, text) : -EBADMSG;
	}
	cursor__skip(&r->c, 1);
	while (!err && r->c.at < r->c.end && *r->c.at)
		err = take_old_file(r);
	return err;
}

/* ---- the header ------------------------------------------------------------------------------ */

static int take_header(struct reading *r, const char *compilation_directory)
{
	struct cursor *c = &r->c;
	uint64_t length = cursor__fixed(c, 4), header_length;
	int err;

	r->offset_size = length == UINT32_MAX ? 8 : 4;
	if (r->offset_size == 8)
		length = cursor__fixed(c, 8);
	if (c->bad || length > (uint64_t)(c->end - c->at))
		return -EBADMSG;
	c->end = c->at + length;
	r->version = cursor__fixed(c, 2);
	if (r->version < 2 || r->version > 5)
		return -EBADMSG;
	if (r->version >= 5)
		cursor__skip(c, 2); /* sizes of addresses and of segments */
	header_length = cursor__fixed(c, r->offset_size);
	if (c->bad || header_length > (uint64_t)(c->end - c->at))
		return -EBADMSG;
	r->opcodes = c->at + header_length;
	r->minimum_length = cursor__fixed(c, 1);
	r->operations = r->version >= 4 ? cursor__fixed(c, 1) : 1;
	cursor__fixed(c, 1); /* are rows statements? */
	r->line_base = (int8_t)cursor__fixed(c, 1);
	r->line_range = cursor__fixed(c, 1);
	r->opcode_base = cursor__fixed(c, 1);
	r->lengths = c->at - 1;
	if (!r->operations || !r->line_range || !r->opcode_base)
		return -EBADMSG;
	cursor__skip(c, r->opcode_base - 1);
	err = r->version >= 5 ? take_entries(r, false) ?: take_entries(r, true)
			      : take_old_names(r, compilation_directory);
	if (err || c->bad)
		return err ?: -EBADMSG;
	c->at = r->opcodes;
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void begin_sequence(struct reading *r)
{
	r->address = r->operation = r->column = 0;
	r->file = r->line = 1;
	r->sequence = r->program->rows.count;
}

static void advance(struct reading *r, uint64_t operations)
{
	if (r->operations == 1) {
		r->address += r->minimum_length * operations;
		return;
	}
	operations += r->operation;
	r->address += r->minimum_length * (operations / r->operations);
	r->operation = operations % r->operations;
}

static int add_row(struct reading *r, bool ends)
{
	size_t count = r->program->rows.count;
	struct line_row row = {.address = r->address,
			       .line = r->line < 1 << LINE_BITS ? r->line : 0,
			       .column = r->column < 1 << COLUMN_BITS ? r->column : 0,
			       .file = min_u64(r->file, FILE_UNKNOWN),
			       .ends = ends};

	r->unsorted |= count && r->program->rows.data[count - 1].address > row.address;
	/* one that ends a sequence comes before another one at its address */
	r->unsorted |= ends && count && r->program->rows.data[count - 1].address == row.address;
	return count < r->rows_max ? vec_push(&r->program->rows, row) : -EFBIG;
}

static int take_extended(struct reading *r)
{
	uint64_t length = cursor__uleb(&r->c);
	const unsigned char *next = r->c.at + length;
	int err = 0;

	if (r->c.bad || !length || length > (uint64_t)(r->c.end - r->c.at))
		return -EBADMSG;
	switch (cursor__fixed(&r->c, 1)) {
	case DW_LNE_end_sequence:
		err = add_row(r, true);
		begin_sequence(r);
		break;
	case DW_LNE_set_address:
		r->operation = 0;
		r->address = cursor__fixed(&r->c, min_u64(length - 1, 8));
		break;
	case DW_LNE_define_file:
		err = take_old_file(r);
		break;
	default:
		break;
	}
	r->c.at = next;
	return err;
}

static int take_standard(struct reading *r, unsigned int opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return add_row(r, false);
	case DW_LNS_advance_pc:
		advance(r, cursor__uleb(&r->c));
		return 0;
	case DW_LNS_advance_line:
		r->line += cursor__sleb(&r->c);
		return 0;
	case DW_LNS_set_file:
		r->file = cursor__uleb(&r->c);
		return 0;
	case DW_LNS_set_column:
		r->column = cursor__uleb(&r->c);
		return 0;
	case DW_LNS_const_add_pc:
		advance(r, (255 - r->opcode_base) / r->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		r->address += cursor__fixed(&r->c, 2);
		r->operation = 0;
		return 0;
	default:
		for (unsigned int i = 0; i < r->lengths[opcode]; i++)
			cursor__uleb(&r->c);
		return 0;
	}
}

static int take_rows(struct reading *r)
{
	int err = 0;

	r->has_files = false; /* rows are read once, and with them the files that they define */
	begin_sequence(r);
	while (r->c.at < r->c.end && !err && !r->c.bad) {
		unsigned int opcode = *r->c.at++;

		if (opcode >= r->opcode_base) {
			opcode -= r->opcode_base;
			advance(r, opcode / r->line_range);
			r->line += r->line_base + (int)(opcode % r->line_range);
			err = add_row(r, false);
		} else {
			err = opcode ? take_standard(r, opcode) : take_extended(r);
		}
	}
	return err ?: r->c.bad ? -EBADMSG : 0;
}

/* ---- their order ----------------------------------------------------------------------------- */

struct ordered_row {
	struct line_row row;
	size_t number;
};

DEFINE_ORDER(compare_rows, struct ordered_row,
	     ASCENDING(row.address) ?: DESCENDING(row.ends) ?: ASCENDING(number));

static int sort_rows(struct line_program *p)
{
	_cleanup_free_ struct ordered_row *rows = calloc(p->rows.count + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < p->rows.count; i++)
		rows[i] = (struct ordered_row){p->rows.data[i], i};
	qsort(rows, p->rows.count, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < p->rows.count; i++)
		p->rows.data[i] = rows[i].row;
	return 0;
}

int line_program__read(struct line_program *p, struct elf_image *image, uint64_t offset,
		       const char *compilation_directory, bool rows, uint64_t memory_limit)
{
	struct elf_image_section *lines = elf_image__section(image, ".debug_line");
	struct reading r = {.image = image,
			    .program = p,
			    .has_files = p->files.count,
			    .rows_max = max_u64(ROWS_LEAST, memory_limit / ROW_MEMORY)};
	int err;

	if (!lines || lines->flags & SHF_COMPRESSED || offset >= lines->size)
		return -EBADMSG;
	r.c = (struct cursor){.at = lines->data + offset,
			      .end = lines->data + lines->size,
			      .big_endian = image->encoding == ELFDATA2MSB};
	err = take_header(&r, compilation_directory) ?: (rows ? take_rows(&r) : 0);
	vec_free(&r.directories);
	if (!err && r.unsorted)
		err = sort_rows(p);
	/* the last one always ends a sequence */
	if (!err && p->rows.count)
		p->rows.data[p->rows.count - 1].ends = 1;
	return err;
}
