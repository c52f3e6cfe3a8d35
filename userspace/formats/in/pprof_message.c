/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/pprof_message.h"

#include <errno.h>

#include "base/cleanup.h"
#include "formats/in/pprof_labels.h"

#define MESSAGE_MAX	  (16u << 20) /* bytes of one sample, location, … */
#define TYPES_MAX	  64
#define RECOGNIZED_FIELDS 8

int pprof__fail_at(const struct pprof *p, const uint8_t *at, int error, const char *what,
		   uint64_t number)
{
	return import_fail(p->failure, (uint64_t)(at - p->request->bytes), error, what,
			   (unsigned long long)number);
}

/* ---- the message ----------------------------------------------------------------------------- */

static bool fits(const struct wire *w)
{
	return w->number < sizeof(PROFILE_TYPES) && wire_has_type(w, PROFILE_TYPES);
}

bool pprof__is_recognized(const uint8_t *bytes, size_t size)
{
	struct wire w = wire_of(bytes, size);
	unsigned int fields = 0;
	bool has_table = false; /* letters are numbers of other fields: "xxxxxx" has three */
	int more = 1;

	while (fields < RECOGNIZED_FIELDS && (more = wire_next(&w)) > 0) {
		if (!fits(&w))
			return false;
		has_table |= w.number <= PPROF_STRING_TABLE;
		fields++;
	}
	return has_table && (fields >= 3 || !more);
}

static int refuse_message(const struct pprof *p, const struct wire *w, int err)
{
	return err == -EBADMSG ? pprof__fail_at(p, w->bytes, err,
						"a message in field %llu is damaged", w->number)
			       : err;
}

int pprof__read_numbers(const struct pprof *p, const struct wire *w, const char *types, void *to,
			size_t size)
{
	return refuse_message(p, w, wire_numbers(wire_inside(w), types, to, size) ? 0 : -EBADMSG);
}

int pprof__take_field(struct pprof *p, const struct wire *w, const struct wanted_field *wanted)
{
	uint64_t message[NUMBERS_MAX];
	int err = wanted->types ? pprof__read_numbers(p, w, wanted->types, message, sizeof(message))
				: 0;

	return err ?: wanted->take(p, w, message);
}

static void note_span(struct pprof *p, const uint8_t *begin, const struct wire *w)
{
	struct field_span *span;

	if (w->number > PPROF_DEFAULT_SAMPLE_TYPE)
		return;
	span = &p->spans[w->number];
	span->at = span->at ? span->at : begin;
	span->end = w->at > span->end ? w->at : span->end;
}

/* Those with numbers of `wanted`, which ends with a row of zeros. */
static int walk_fields(struct pprof *p, struct wire w, const struct wanted_field *wanted)
{
	const uint8_t *begin = w.at;
	int more;

	for (; (more = wire_next(&w)) > 0; begin = w.at) {
		const struct wanted_field *row = wanted;
		int err;

		note_span(p, begin, &w);
		if (w.type == WIRE_BYTES && w.size > MESSAGE_MAX)
			return pprof__fail_at(p, w.bytes, -E2BIG, "a message of %llu bytes",
					      w.size);
		if (w.number <= PPROF_PERIOD && !fits(&w))
			return pprof__fail_at(p, w.bytes, -EBADMSG, "field %llu has the wrong type",
					      w.number);
		while (row->number && row->number != w.number)
			row++;
		err = row->number ? pprof__take_field(p, &w, row) : 0;
		if (err)
			return err;
	}
	return more < 0 ? pprof__fail_at(p, w.at, -EBADMSG, "the message is damaged or cut off", 0)
			: 0;
}

struct wire pprof__fields(const struct pprof *p, uint32_t number)
{
	const struct field_span *span = &p->spans[number];

	return span->at ? wire_of(span->at, (size_t)(span->end - span->at))
			: wire_of(p->request->bytes, 0);
}

int pprof__each_field(struct pprof *p, const struct wanted_field *wanted)
{
	const struct wanted_field rows[] = {*wanted, {}};

	return walk_fields(p, pprof__fields(p, wanted->number), rows);
}

/* ---- tables ---------------------------------------------------------------------------------- */

int pprof__check_room(const struct pprof *p, const struct wire *w, size_t count)
{
	return count < TABLE_MAX ? 0
				 : pprof__fail_at(p, w->bytes, -E2BIG,
						  "more than %llu elements of a table", TABLE_MAX);
}

int pprof__check_id(const struct pprof *p, const struct wire *w, uint64_t id, const void *added,
		    bool is_new)
{
	if (!id)
		return pprof__fail_at(p, w->bytes, -EBADMSG, "an id is 0 in field %llu", w->number);
	if (!added)
		return -ENOMEM;
	return is_new ? 0 : pprof__fail_at(p, w->bytes, -EBADMSG, "the id %llu is there twice", id);
}

/* Strings may come later: its name is looked up then. */
static int add_mapping(struct pprof *p, const struct wire *w, const void *message)
{
	const struct pprof_mapping *m = message;
	const struct mapping mapping = {
		.id = m->id,
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.filename = m->filename,
	};
	bool is_new = false;
	const struct mapping *added = mappings__need(&p->mappings, &mapping, &is_new);

	return pprof__check_id(p, w, mapping.id, added, is_new)
		       ?: pprof__check_room(p, w, p->mappings.count);
}

static int add_function(struct pprof *p, const struct wire *w, const void *message)
{
	struct pprof_function function = *(const struct pprof_function *)message;
	bool is_new = false;
	const struct pprof_function *added;

	function.name = function.name ?: function.system_name;
	added = functions__need(&p->functions, &function, &is_new);
	return pprof__check_id(p, w, function.id, added, is_new)
		       ?: pprof__check_room(p, w, p->functions.count);
}

static int set_period_type(struct pprof *p, const struct wire *w, const void *message)
{
	(void)w;
	p->period_type = *(const struct pprof_value_type *)message;
	return 0;
}

static int add_type(struct pprof *p, const struct wire *w, const void *message)
{
	if (p->types.count == TYPES_MAX)
		return pprof__fail_at(p, w->bytes, -E2BIG, "more than %llu sample types",
				      TYPES_MAX);
	return vec_push(&p->types, *(const struct pprof_value_type *)message);
}

static int add_string(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	return pprof__check_room(p, w, p->strings.count)
		       ?: vec_push(&p->strings, (struct text){.bytes = w->bytes, .size = w->size});
}

static int note_number(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	*(w->number == PPROF_PERIOD		   ? &p->period
	  : w->number == PPROF_DURATION_NANOS	   ? &p->duration
	  : w->number == PPROF_DEFAULT_SAMPLE_TYPE ? &p->default_type
	  : w->number == PPROF_DROP_FRAMES	   ? &p->drop_frames
	  : w->number == PPROF_KEEP_FRAMES	   ? &p->keep_frames
						   : &p->time) = (int64_t)w->value;
	return 0;
}

static int note_first_sample(struct pprof *p, const struct wire *w, const void *message)
{
	(void)message;
	p->first = p->first.bytes ? p->first : *w;
	return 0;
}

int pprof__read_tables(struct pprof *p)
{
	static const struct wanted_field tables[] = {
		{PPROF_SAMPLE_TYPE, VALUE_TYPE_TYPES, add_type},
		{PPROF_SAMPLE, NULL, note_first_sample},
		{PPROF_MAPPING, MAPPING_TYPES, add_mapping},
		{PPROF_FUNCTION, FUNCTION_TYPES, add_function},
		{PPROF_STRING_TABLE, NULL, add_string},
		{PPROF_PERIOD_TYPE, VALUE_TYPE_TYPES, set_period_type},
		{PPROF_TIME_NANOS, NULL, note_number},
		{PPROF_DURATION_NANOS, NULL, note_number},
		{PPROF_PERIOD, NULL, note_number},
		{PPROF_DEFAULT_SAMPLE_TYPE, NULL, note_number},
		{PPROF_DROP_FRAMES, NULL, note_number},
		{PPROF_KEEP_FRAMES, NULL, note_number},
		{}};

	return walk_fields(p, wire_of(p->request->bytes, p->request->size), tables);
}

/* ---- strings and samples --------------------------------------------------------------------- */

int pprof__copy_string(const struct pprof *p, int64_t index, char **copy)
{
	if (index < 0 || (uint64_t)index >= (p->strings.count ? p->strings.count : 1))
		return import_fail(p->failure, 0, -EBADMSG,
				   "there is no string %lld in a table of %zu", (long long)index,
				   p->strings.count);
	*copy = p->strings.count ? strndup((const char *)p->strings.data[index].bytes,
					   p->strings.data[index].size)
				 : strdup("");
	return *copy ? 0 : -ENOMEM;
}

int pprof__intern(struct pprof *p, int64_t index, struct string_id *id)
{
	struct text *text = index >= 0 && (uint64_t)index < p->strings.count
				    ? &p->strings.data[index]
				    : NULL;
	_cleanup_free_ char *copy = NULL;
	int err = text && text->has_id ? 0 : pprof__copy_string(p, index, &copy);

	*id = copy ? profile_builder__string(p->b, copy) : (struct string_id){0};
	if (!text || err)
		return err;
	text->id = text->has_id ? text->id : *id;
	text->has_id = true;
	*id = text->id;
	return 0;
}

/* The path of a file. */
int pprof__intern_file(struct pprof *p, int64_t index, struct string_id *id)
{
	int err = pprof__intern(p, index, id);
	struct text *text;

	if (err || !id->v)
		return err;
	text = &p->strings.data[index];
	if (!text->has_file)
		text->file = frames__file(&p->frames, profile_builder__get_string(p->b, *id));
	text->has_file = true;
	*id = text->file;
	return 0;
}

bool pprof__string_is(const struct pprof *p, int64_t index, const char *text)
{
	return index > 0 && (uint64_t)index < p->strings.count &&
	       p->strings.data[index].size == strlen(text) &&
	       !memcmp(p->strings.data[index].bytes, text, strlen(text));
}

int pprof__read_values(struct pprof *p, const struct wire *w)
{
	p->values.count = 0;
	return refuse_message(p, w, wire_repeated(wire_inside(w), PPROF_VALUE, &p->values));
}

int pprof__read_path(struct pprof *p, const struct wire *w)
{
	p->path.count = 0;
	return refuse_message(p, w, wire_repeated(wire_inside(w), PPROF_LOCATION_ID, &p->path));
}
