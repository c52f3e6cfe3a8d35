/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format: a header, answers sorted by address, their frames, and strings without repetition.
 *
 * It is read by the machine that wrote it and by the version that wrote it, so everything is in the
 * machine's own order and width, and whoever does not recognise the header throws the file away. A
 * checksum finds what the disk or a crash did; it is no protection from somebody who writes on
 * purpose, so every offset and order is verified as well, once, when the image is opened.
 */
#include "symbolize/symbol_image.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/search.h"
#include "base/strtab.h"
#include "base/vec.h"

#define VERSION	   2	/* since Go programs are named by their function table */
#define FRAMES_MAX 1024 /* of one answer */

static const char MAGIC[8] = "sysprofS";

struct image_header {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* of everything behind this field */
	uint64_t size;
	uint64_t maker; /* the program's version */
	uint64_t debug_id;
	uint32_t answers, frames, strings_size;
	uint32_t build_id_size;
	uint8_t build_id[SYMBOL_IMAGE_BUILD_ID_MAX];
};

struct image_answer {
	uint64_t address, elf_address;
	uint32_t first_frame, frame_count;
};

/* Strings are offsets into the strings (numbers of strtab until they are written); 0 is "". */
struct image_frame {
	uint64_t function_address, function_size;
	uint32_t function, file, definition_file;
	uint32_t line, column, definition_line, definition_column;
	uint32_t reserved;
};

_Static_assert(sizeof(struct image_header) % 8 == 0 && sizeof(struct image_answer) % 8 == 0 &&
		       sizeof(struct image_frame) % 8 == 0,
	       "tables follow one another without gaps");

#define CRC_START (offsetof(struct image_header, crc) + sizeof(uint32_t))

struct symbol_answers {
	VEC(struct image_answer) answers;
	VEC(struct image_frame) frames;
	struct strtab *strings;
	uint64_t size, size_limit;	  /* of the image, should nothing be replaced */
	bool sorted;			  /* and one answer per address */
	VEC(struct symbol_frame) scratch; /* of what was found last */
};

struct symbol_image {
	void *data;
	const struct image_header *header;
	const struct image_answer *answers;
	const struct image_frame *frames;
	const char *strings;
	VEC(struct symbol_frame) scratch; /* of what was found last */
};

static uint64_t hash_of_maker(void)
{
	return hash_stable(SYSPROF_VERSION, sizeof(SYSPROF_VERSION));
}

/* ---- making ---------------------------------------------------------------------------------- */

struct symbol_answers *symbol_answers__new(uint64_t size_limit)
{
	struct symbol_answers *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->size_limit = min_u64(size_limit, UINT32_MAX);
	a->size = sizeof(struct image_header) + 1;
	a->strings = strtab__new();
	if (!a->strings) {
		symbol_answers__free(a);
		return NULL;
	}
	return a;
}

void symbol_answers__free(struct symbol_answers *a)
{
	if (!a)
		return;
	vec_free(&a->answers);
	vec_free(&a->frames);
	vec_free(&a->scratch);
	strtab__free(a->strings);
	free(a);
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* At most: strings that are there already take nothing. */
static uint64_t size_of(const struct symbol_result *result)
{
	uint64_t size = sizeof(struct image_answer);

	for (size_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *f = &result->frames[i];

		size += sizeof(struct image_frame) + text_size(f->function) + text_size(f->file) +
			text_size(f->definition_file);
	}
	return size;
}

/* Number of a string; adds to *size what it takes anew. NULL and "" are one. */
static int intern_text(struct symbol_answers *a, const char *text, uint32_t *number)
{
	size_t before = strtab__count(a->strings);
	int64_t result = strtab__intern(a->strings, text ? text : "");

	if (result < 0)
		return result;
	if (strtab__count(a->strings) > before)
		a->size += strlen(text) + 1;
	*number = result;
	return 0;
}

static int add_frame(struct symbol_answers *a, const struct symbol_frame *frame)
{
	struct image_frame f = {
		.function_address = frame->function_address,
		.function_size = frame->function_size,
		.line = frame->line,
		.column = frame->column,
		.definition_line = frame->definition_line,
		.definition_column = frame->definition_column,
	};
	int err = intern_text(a, frame->function, &f.function);

	if (!err)
		err = intern_text(a, frame->file, &f.file);
	if (!err)
		err = intern_text(a, frame->definition_file, &f.definition_file);
	return err ? err : vec_push(&a->frames, f);
}

int symbol_answers__add(struct symbol_answers *a, uint64_t address,
			const struct symbol_result *result)
{
	struct image_answer answer = {
		.address = address,
		.elf_address = result->elf_address,
		.first_frame = a->frames.count,
		.frame_count = result->frame_count,
	};
	int err = 0;

	if (result->frame_count > FRAMES_MAX || a->size + size_of(result) > a->size_limit)
		return -EFBIG;
	for (size_t i = 0; i < result->frame_count && !err; i++)
		err = add_frame(a, &result->frames[i]);
	if (!err)
		err = vec_push(&a->answers, answer);
	if (err) {
		a->frames.count = answer.first_frame;
		return err;
	}
	a->size += sizeof(answer) + result->frame_count * sizeof(struct image_frame);
	a->sorted = false;
	return 0;
}

/* Frames are in the order of arrival, so of two answers the later one has the later frames. */
static int compare_answers(const void *a, const void *b)
{
	const struct image_answer *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->first_frame != y->first_frame)
		return x->first_frame > y->first_frame ? -1 : 1;
	return (x->frame_count < y->frame_count) - (x->frame_count > y->frame_count);
}

static void sort_answers(struct symbol_answers *a)
{
	size_t kept = 0;

	if (a->sorted)
		return;
	if (a->answers.count)
		qsort(a->answers.data, a->answers.count, sizeof(*a->answers.data), compare_answers);
	for (size_t i = 0; i < a->answers.count; i++)
		if (!kept || a->answers.data[kept - 1].address != a->answers.data[i].address)
			a->answers.data[kept++] = a->answers.data[i];
	a->answers.count = kept;
	a->sorted = true;
}

static const struct image_answer *find_answer(const struct image_answer *answers, size_t count,
					      uint64_t address)
{
	size_t i = partition_point(answers, count, a, a->address < address);

	return i < count && answers[i].address == address ? &answers[i] : NULL;
}

uint64_t symbol_answers__size(const struct symbol_answers *a)
{
	return a->size;
}

static const char *optional_text(const struct symbol_answers *a, uint32_t number)
{
	const char *text = strtab__get(a->strings, number);

	return *text ? text : NULL;
}

int symbol_answers__find(struct symbol_answers *a, uint64_t address, struct symbol_result *result)
{
	const struct image_answer *answer;

	sort_answers(a);
	answer = find_answer(a->answers.data, a->answers.count, address);
	if (!answer)
		return -ENOENT;
	a->scratch.count = 0;
	if (vec_reserve(&a->scratch, answer->frame_count))
		return -ENOMEM;
	for (uint32_t i = 0; i < answer->frame_count; i++) {
		const struct image_frame *f = &a->frames.data[answer->first_frame + i];

		a->scratch.data[i] = (struct symbol_frame){
			.function = strtab__get(a->strings, f->function),
			.function_address = f->function_address,
			.function_size = f->function_size,
			.file = optional_text(a, f->file),
			.line = f->line,
			.column = f->column,
			.definition_file = optional_text(a, f->definition_file),
			.definition_line = f->definition_line,
			.definition_column = f->definition_column,
		};
	}
	*result = (struct symbol_result){
		.elf_address = answer->elf_address,
		.frames = answer->frame_count ? a->scratch.data : NULL,
		.frame_count = answer->frame_count,
	};
	return 0;
}

/* All strings behind one another, and where each begins. */
static int lay_out_strings(const struct symbol_answers *a, uint32_t **offsets, uint64_t *size)
{
	size_t count = strtab__count(a->strings);
	uint32_t *at = calloc(count, sizeof(*at));

	if (!at)
		return -ENOMEM;
	*size = 0;
	for (size_t i = 0; i < count; i++) {
		at[i] = *size;
		*size += strlen(strtab__get(a->strings, i)) + 1;
	}
	*offsets = at;
	return 0;
}

static void put_frames(const struct symbol_answers *a, const uint32_t *offsets,
		       struct image_frame *frames)
{
	for (size_t i = 0; i < a->frames.count; i++) {
		frames[i] = a->frames.data[i];
		frames[i].function = offsets[frames[i].function];
		frames[i].file = offsets[frames[i].file];
		frames[i].definition_file = offsets[frames[i].definition_file];
	}
}

static void put_strings(const struct symbol_answers *a, const uint32_t *offsets, char *strings)
{
	for (size_t i = 0; i < strtab__count(a->strings); i++) {
		const char *s = strtab__get(a->strings, i);

		memcpy(strings + offsets[i], s, strlen(s) + 1);
	}
}

int symbol_answers__encode(struct symbol_answers *a, const struct symbol_image_id *id, void **data,
			   size_t *size)
{
	struct image_header header = {
		.version = VERSION, .maker = hash_of_maker(), .debug_id = id->debug_id};
	_cleanup_free_ uint32_t *offsets = NULL;
	size_t answers_size, frames_size;
	uint64_t strings_size;
	char *image, *at;
	int err = lay_out_strings(a, &offsets, &strings_size);

	if (err)
		return err;
	sort_answers(a);
	answers_size = a->answers.count * sizeof(*a->answers.data);
	frames_size = a->frames.count * sizeof(*a->frames.data);
	memcpy(header.magic, MAGIC, sizeof(MAGIC));
	header.size = sizeof(header) + answers_size + frames_size + strings_size;
	header.answers = a->answers.count;
	header.frames = a->frames.count;
	header.strings_size = strings_size;
	header.build_id_size = id->build_id_size;
	memcpy(header.build_id, id->build_id, id->build_id_size);
	image = malloc(header.size);
	if (!image)
		return -ENOMEM;
	at = image + sizeof(header);
	if (answers_size)
		memcpy(at, a->answers.data, answers_size);
	at += answers_size;
	put_frames(a, offsets, (struct image_frame *)at);
	put_strings(a, offsets, at + frames_size);
	memcpy(image, &header, sizeof(header));
	header.crc = crc32_update(0, image + CRC_START, header.size - CRC_START);
	memcpy(image, &header, sizeof(header));
	*data = image;
	*size = header.size;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool header_is_good(const void *data, size_t size, const struct symbol_image_id *id)
{
	const struct image_header *h = data;
	uint64_t sum;

	if (size < sizeof(*h) || memcmp(h->magic, MAGIC, sizeof(MAGIC)) || h->version != VERSION ||
	    h->size != size || h->maker != hash_of_maker())
		return false;
	if (h->debug_id != id->debug_id || h->build_id_size != id->build_id_size ||
	    memcmp(h->build_id, id->build_id, id->build_id_size))
		return false;
	sum = sizeof(*h) + (uint64_t)h->answers * sizeof(struct image_answer) +
	      (uint64_t)h->frames * sizeof(struct image_frame) + h->strings_size;
	return sum == size && h->strings_size;
}

static bool tables_are_good(const struct symbol_image *image)
{
	const struct image_header *h = image->header;

	if (image->strings[0] || image->strings[h->strings_size - 1])
		return false;
	for (uint32_t i = 0; i < h->answers; i++) {
		const struct image_answer *a = &image->answers[i];

		if ((i && a[-1].address >= a->address) || a->frame_count > FRAMES_MAX ||
		    a->first_frame > h->frames || a->frame_count > h->frames - a->first_frame)
			return false;
	}
	for (uint32_t i = 0; i < h->frames; i++) {
		const struct image_frame *f = &image->frames[i];

		if (f->function >= h->strings_size || f->file >= h->strings_size ||
		    f->definition_file >= h->strings_size)
			return false;
	}
	return true;
}

int symbol_image__open(void *data, size_t size, const struct symbol_image_id *id,
		       struct symbol_image **image)
{
	struct symbol_image *i = calloc(1, sizeof(*i));
	const char *tables = (const char *)data + sizeof(struct image_header);

	if (!i) {
		free(data);
		return -ENOMEM;
	}
	i->data = data;
	if (!header_is_good(data, size, id))
		goto err_out;
	i->header = data;
	i->answers = (const struct image_answer *)tables;
	tables += i->header->answers * sizeof(struct image_answer);
	i->frames = (const struct image_frame *)tables;
	i->strings = tables + i->header->frames * sizeof(struct image_frame);
	if (crc32_update(0, (char *)data + CRC_START, size - CRC_START) != i->header->crc ||
	    !tables_are_good(i))
		goto err_out;
	*image = i;
	return 0;

err_out:
	symbol_image__free(i);
	return -EBADMSG;
}

void symbol_image__free(struct symbol_image *image)
{
	if (!image)
		return;
	free(image->data);
	vec_free(&image->scratch);
	free(image);
}

static const char *optional_string(const struct symbol_image *image, uint32_t offset)
{
	return image->strings[offset] ? image->strings + offset : NULL;
}

static int make_result(struct symbol_image *image, const struct image_answer *answer,
		       struct symbol_result *result)
{
	if (vec_reserve(&image->scratch, answer->frame_count))
		return -ENOMEM;
	for (uint32_t i = 0; i < answer->frame_count; i++) {
		const struct image_frame *f = &image->frames[answer->first_frame + i];

		image->scratch.data[i] = (struct symbol_frame){
			.function = image->strings + f->function,
			.function_address = f->function_address,
			.function_size = f->function_size,
			.file = optional_string(image, f->file),
			.line = f->line,
			.column = f->column,
			.definition_file = optional_string(image, f->definition_file),
			.definition_line = f->definition_line,
			.definition_column = f->definition_column,
		};
	}
	*result = (struct symbol_result){
		.elf_address = answer->elf_address,
		.frames = answer->frame_count ? image->scratch.data : NULL,
		.frame_count = answer->frame_count,
	};
	return 0;
}

int symbol_image__find(struct symbol_image *image, uint64_t address, struct symbol_result *result)
{
	const struct image_answer *answer = find_answer(image->answers, image->header->answers,
							address);

	return answer ? make_result(image, answer, result) : -ENOENT;
}

int symbol_image__merge(struct symbol_image *image, struct symbol_answers *a)
{
	size_t before;

	sort_answers(a);
	before = a->answers.count;
	for (uint32_t i = 0; i < image->header->answers; i++) {
		struct symbol_result result;
		int err;

		if (find_answer(a->answers.data, before, image->answers[i].address))
			continue;
		err = make_result(image, &image->answers[i], &result);
		if (!err)
			err = symbol_answers__add(a, image->answers[i].address, &result);
		if (err)
			return err == -EFBIG ? 0 : err;
	}
	return 0;
}
