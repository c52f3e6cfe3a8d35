/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof (profile.proto, .pb.gz). The only file here that knows protobuf-c.
 *
 * A sample of the file stands for all samples of a thread with the same stack and the same name of the
 * thread. Its values are [ticks, CPU time]: over the file they add up to the samples and to the CPU time of all
 * threads exactly. The time that a thread used after its last sample is that sample's; a thread that used CPU
 * time without being sampled has a sample of its own, of no ticks, in a function called "[not sampled]".
 *
 * Addresses and mappings. A mapping stands for a file, whoever mapped it and where: addresses are those of the
 * ELF file, and file_offset is such that an address less memory_start plus file_offset is the offset in the file.
 * So equal code of two processes is one location, and profiles of two machines merge. Kernel addresses are what
 * they are. Code that is in no file (of a JIT compiler, or outside every mapping) has mapping 0.
 *
 * Flags. pprof looks for the symbols of a mapping without flags, on its own machine, and replaces the lines of
 * all its locations; a mapping with any of the flags it leaves alone. There is nothing in between, so a mapping
 * is either
 *   - symbolized: has_functions, and every location has a line. What has no symbol is called "[name of the
 *     file]", as it is everywhere else;
 *   - or not at all: no flags and no lines. Only a file with a build id of which no location has a name: another
 *     tool may know the symbols, and can tell that it has the right file. The addresses are offsets in the file
 *     then, since the program headers were not seen. pprof shows them as "[name of the file]".
 *
 * Names. system_name stays empty: where it equals the name, pprof takes the name for a mangled one, and cuts
 * arguments and template arguments off it. A function whose lines are in several files (headers expanded in it)
 * is several functions of the file, since a line has no file of its own; the one in the file of the definition
 * has the start_line.
 *
 * All messages but the profile itself are packed and written one at a time, so a big file needs no memory. Tables
 * are numbered in order of first use, from 1 without gaps, and come after the samples that number them.
 */
#include "export/exporters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pprof.pb-c.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/strtab.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "export/comments.h"
#include "export/facts.h"

#define NOT_SAMPLED "[not sampled]"
#define PAGE_MASK   4095u
#define MAX_LABELS  5

/* Numbers of the fields of a profile. */
enum profile_field {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE,
	FIELD_MAPPING,
	FIELD_LOCATION,
	FIELD_FUNCTION,
	FIELD_STRING_TABLE,
};

/* A sample of the file: those of the thread in hand with one stack and one name. */
struct pprof_sample {
	struct stack_id stack;
	struct string_id comm;
	uint32_t
		next; /* the one with the same stack and another name, or 0: sample 0 is nobody's next */
	uint64_t ticks, cpu;
};

/* By stack: the first of its samples, if it is of the thread in hand. */
struct pprof_memo {
	uint32_t thread, sample;
};

struct pprof_mapping {
	struct dso_id dso;
	bool symbolized, has_filenames, has_line_numbers, has_inline_frames;
	uint64_t lowest, highest; /* addresses of its locations */
};

struct pprof_dso {
	bool is_named;		/* a location of it has a name from a symbol */
	bool knows_addresses;	/* of the ELF file, for a location of it */
	uint64_t address_delta; /* such an address less the offset in the file, modulo 2^64 */
};

/* A function as far as its lines are in one file. */
struct pprof_function {
	struct function_id function;
	struct string_id file;
};

struct pprof {
	const struct profile *p;
	FILE *out;
	int error; /* the first one */
	VEC(uint8_t) packed;
	struct strtab *strings;		      /* as they are in the file */
	uint32_t *string_number;	      /* by string of the profile; 0: none yet, or "" */
	uint32_t *location_number;	      /* by location; 0: none yet */
	VEC(uint32_t) locations;	      /* by number - 1; location 0 is NOT_SAMPLED */
	uint32_t *mapping_number;	      /* by dso; 0: none yet */
	struct pprof_dso *dsos;		      /* by dso */
	VEC(struct pprof_mapping) mappings;   /* by number - 1 */
	VEC(struct pprof_function) functions; /* by number - 1 */
	struct hashmap function_map;
	struct pprof_memo *memo;
	VEC(struct pprof_sample) samples; /* scratch: those of one thread */
	VEC(uint64_t) path;		  /* scratch */
};

static void note_error(struct pprof *pp, int err)
{
	if (!pp->error)
		pp->error = err;
}

/* ---- messages -------------------------------------------------------------------------------- */

static size_t pack_varint(uint8_t *out, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		out[size++] = (uint8_t)value | 0x80;
	out[size++] = (uint8_t)value;
	return size;
}

static void write_bytes(struct pprof *pp, const void *bytes, size_t size)
{
	if (pp->error || !size)
		return;
	errno = 0;
	if (fwrite(bytes, 1, size, pp->out) != size)
		note_error(pp, errno ? -errno : -EIO);
}

/* The header of a field with a length. */
static void write_header(struct pprof *pp, enum profile_field field, size_t size)
{
	uint8_t header[16];
	size_t used = pack_varint(header, (uint64_t)field << 3 | 2);

	used += pack_varint(header + used, size);
	write_bytes(pp, header, used);
}

static void pack_message(struct pprof *pp, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	pp->packed.count = 0;
	if (vec_reserve(&pp->packed, size))
		return note_error(pp, -ENOMEM);
	pp->packed.count = protobuf_c_message_pack(message, pp->packed.data);
}

static void write_message(struct pprof *pp, enum profile_field field,
			  const ProtobufCMessage *message)
{
	pack_message(pp, message);
	if (pp->error)
		return;
	write_header(pp, field, pp->packed.count);
	write_bytes(pp, pp->packed.data, pp->packed.count);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Readers demand valid UTF-8, and some print a name as it is. */
static int64_t text_number(struct pprof *pp, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	_cleanup_free_ char *clean = malloc(size);
	int64_t number = -ENOMEM;

	if (clean) {
		utf8_sanitize(clean, size, text);
		number = strtab__intern(pp->strings, clean);
	}
	if (number < 0) {
		note_error(pp, (int)number);
		return 0;
	}
	return number;
}

static int64_t string_number(struct pprof *pp, struct string_id string)
{
	uint32_t *number = &pp->string_number[string.v];

	if (!*number)
		*number = (uint32_t)text_number(pp, profile__string(pp->p, string));
	return *number;
}

static void write_strings(struct pprof *pp)
{
	size_t count = strtab__count(pp->strings);
	const char *const *strings = strtab__array(pp->strings);

	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(strings[i]);

		write_header(pp, FIELD_STRING_TABLE, size);
		write_bytes(pp, strings[i], size);
	}
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool function_equal(const void *owner, uint32_t index, const void *key)
{
	const struct pprof *pp = owner;

	return !memcmp(&pp->functions.data[index], key, sizeof(struct pprof_function));
}

static uint32_t function_number(struct pprof *pp, const struct pprof_function *function)
{
	uint64_t hash = hash_bytes(function, sizeof(*function));
	uint32_t found = hashmap__find(&pp->function_map, hash, function);
	int err;

	if (found != HASHMAP_NONE)
		return found + 1;
	found = (uint32_t)pp->functions.count;
	err = vec_push(&pp->functions, *function);
	if (!err)
		err = hashmap__add(&pp->function_map, hash, found);
	if (err)
		note_error(pp, err);
	return found + 1;
}

static void write_functions(struct pprof *pp)
{
	for (size_t i = 0; i < pp->functions.count; i++) {
		const struct pprof_function *key = &pp->functions.data[i];
		const struct profile_function *f = &pp->p->functions[key->function.v];
		Pprof__Function message = PPROF__FUNCTION__INIT;

		message.id = i + 1;
		message.name = key->function.v ? string_number(pp, f->name)
					       : text_number(pp, NOT_SAMPLED);
		message.filename = string_number(pp, key->file);
		if (key->file.v == f->definition_file.v)
			message.start_line = f->definition_line;
		write_message(pp, FIELD_FUNCTION, &message.base);
	}
}

/* ---- mappings -------------------------------------------------------------------------------- */

static bool has_mapping(const struct profile_dso *dso)
{
	return dso->kind == DSO_FILE || dso->kind == DSO_VDSO || dso->kind == DSO_KERNEL;
}

static uint32_t mapping_number(struct pprof *pp, struct dso_id id)
{
	const struct profile_dso *dso = &pp->p->dsos[id.v];
	struct pprof_mapping mapping = {
		.dso = id,
		.symbolized = pp->dsos[id.v].is_named || !dso->build_id_size ||
			      dso->kind != DSO_FILE,
		.lowest = UINT64_MAX,
	};

	if (!has_mapping(dso))
		return 0;
	if (!pp->mapping_number[id.v]) {
		if (vec_push(&pp->mappings, mapping)) {
			note_error(pp, -ENOMEM);
			return 0;
		}
		pp->mapping_number[id.v] = (uint32_t)pp->mappings.count;
	}
	return pp->mapping_number[id.v];
}

/* A location's address in its mapping, which has to cover it. */
static uint64_t place_in_mapping(const struct pprof *pp, struct pprof_mapping *mapping,
				 const struct profile_location *l)
{
	uint64_t address = l->address;

	if (mapping->symbolized && l->elf_address != PROFILE_UNKNOWN_ADDRESS)
		address = l->elf_address;
	else if (mapping->symbolized)
		address += pp->dsos[mapping->dso.v].address_delta;
	mapping->lowest = min_u64(mapping->lowest, address);
	mapping->highest = max_u64(mapping->highest, address);
	return address;
}

static int64_t build_id_number(struct pprof *pp, const struct profile_dso *dso)
{
	char text[2 * BUILD_ID_SIZE + 1] = "";

	for (unsigned int i = 0; i < dso->build_id_size && i < BUILD_ID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", dso->build_id[i]);
	return text_number(pp, text);
}

static void write_mapping(struct pprof *pp, size_t index)
{
	const struct pprof_mapping *mapping = &pp->mappings.data[index];
	const struct profile_dso *dso = &pp->p->dsos[mapping->dso.v];
	uint64_t delta = pp->dsos[mapping->dso.v].address_delta;
	Pprof__Mapping message = PPROF__MAPPING__INIT;
	bool is_used = mapping->lowest <= mapping->highest;

	message.id = index + 1;
	message.memory_start = is_used ? mapping->lowest & ~(uint64_t)PAGE_MASK : 0;
	message.memory_limit = saturating_add_u64(mapping->highest | PAGE_MASK, 1);
	if (!mapping->symbolized)
		message.memory_start = 0; /* the offset itself */
	else if (dso->kind != DSO_KERNEL && delta <= message.memory_start)
		message.file_offset = message.memory_start - delta;
	message.filename = dso->kind == DSO_FILE
				   ? string_number(pp, dso->path)
				   : text_number(pp, dso_display_name(pp->p, mapping->dso));
	message.build_id = build_id_number(pp, dso);
	message.has_functions = mapping->symbolized;
	message.has_filenames = mapping->has_filenames;
	message.has_line_numbers = mapping->has_line_numbers;
	message.has_inline_frames = mapping->has_inline_frames;
	write_message(pp, FIELD_MAPPING, &message.base);
}

static void write_mappings(struct pprof *pp)
{
	for (size_t i = 0; i < pp->mappings.count; i++)
		write_mapping(pp, i);
}

/* ---- locations ------------------------------------------------------------------------------- */

static uint32_t location_number(struct pprof *pp, struct location_id id)
{
	uint32_t *number = &pp->location_number[id.v];

	if (!*number) {
		if (vec_push(&pp->locations, id.v))
			note_error(pp, -ENOMEM);
		*number = (uint32_t)pp->locations.count;
	}
	return *number;
}

/* A line has no file of its own: it goes to the function as it is in that file. */
static void fill_line(struct pprof *pp, const struct profile_line *line,
		      struct pprof_mapping *mapping, Pprof__Line *message)
{
	const struct profile_function *f = &pp->p->functions[line->function.v];
	struct pprof_function key = {line->function,
				     line->file.v ? line->file : f->definition_file};

	message->function_id = function_number(pp, &key);
	message->line = line->line;
	message->column = line->column;
	if (mapping) {
		mapping->has_filenames |= key.file.v != 0;
		mapping->has_line_numbers |= line->line != 0;
	}
}

static void write_location(struct pprof *pp, size_t index)
{
	static const struct profile_line nothing;
	const struct profile *p = pp->p;
	const struct profile_location *l = &p->locations[pp->locations.data[index]];
	const struct profile_line *lines = l->line_count ? &p->lines[l->first_line] : &nothing;
	size_t count = l->line_count ? l->line_count : 1;
	_cleanup_free_ Pprof__Line *messages = calloc(count, sizeof(*messages));
	_cleanup_free_ Pprof__Line **list = calloc(count, sizeof(*list));
	Pprof__Location message = PPROF__LOCATION__INIT;
	struct pprof_mapping *mapping = NULL;

	if (!messages || !list)
		return note_error(pp, -ENOMEM);
	message.id = index + 1;
	message.mapping_id = mapping_number(pp, l->dso);
	message.address = l->address;
	if (message.mapping_id) {
		mapping = &pp->mappings.data[message.mapping_id - 1];
		mapping->has_inline_frames |= l->line_count > 1;
		message.address = place_in_mapping(pp, mapping, l);
	}
	for (size_t i = 0; i < count && (!mapping || mapping->symbolized); i++) {
		pprof__line__init(&messages[i]);
		fill_line(pp, &lines[i], mapping, &messages[i]);
		list[message.n_line++] = &messages[i];
	}
	message.line = list;
	write_message(pp, FIELD_LOCATION, &message.base);
}

static void write_locations(struct pprof *pp)
{
	for (size_t i = 0; i < pp->locations.count && !pp->error; i++)
		write_location(pp, i);
}

/* ---- samples --------------------------------------------------------------------------------- */

struct pprof_labels {
	Pprof__Label labels[MAX_LABELS];
	Pprof__Label *list[MAX_LABELS];
	size_t count;
};

static Pprof__Label *add_label(struct pprof *pp, struct pprof_labels *labels, const char *key)
{
	Pprof__Label *label = &labels->labels[labels->count];

	pprof__label__init(label);
	label->key = text_number(pp, key);
	labels->list[labels->count++] = label;
	return label;
}

/* An empty text would be read as the number 0. */
static void add_text_label(struct pprof *pp, struct pprof_labels *labels, const char *key,
			   struct string_id text)
{
	if (string_number(pp, text))
		add_label(pp, labels, key)->str = string_number(pp, text);
}

static void add_number_label(struct pprof *pp, struct pprof_labels *labels, const char *key,
			     uint32_t number)
{
	Pprof__Label *label = add_label(pp, labels, key);

	label->num = number;
	label->num_unit = label->key; /* or pprof would make up one */
}

/* What a sample says of its thread, whose name is that at the time. */
static void fill_labels(struct pprof *pp, const struct profile_thread *thread,
			struct string_id comm, struct pprof_labels *labels)
{
	const struct profile_process *process = &pp->p->processes[thread->process.v];

	labels->count = 0;
	add_number_label(pp, labels, "pid", process->pid);
	add_number_label(pp, labels, "tid", thread->tid);
	add_text_label(pp, labels, "process", process->name);
	add_text_label(pp, labels, "thread", comm);
	add_text_label(pp, labels, "cgroup", process->cgroup);
}

static void write_sample(struct pprof *pp, uint64_t ticks, uint64_t cpu,
			 struct pprof_labels *labels)
{
	int64_t values[] = {(int64_t)ticks, (int64_t)cpu};
	Pprof__Sample message = PPROF__SAMPLE__INIT;

	message.n_location_id = pp->path.count;
	message.location_id = pp->path.data;
	message.n_value = sizeof(values) / sizeof(values[0]);
	message.value = values;
	message.n_label = labels->count;
	message.label = labels->list;
	write_message(pp, FIELD_SAMPLE, &message.base);
}

static void collect_path(struct pprof *pp, struct stack_id stack)
{
	pp->path.count = 0;
	for (; stack.v && !pp->error; stack = pp->p->stacks[stack.v].parent)
		if (vec_push(&pp->path, location_number(pp, pp->p->stacks[stack.v].location)))
			note_error(pp, -ENOMEM);
}

/* The sample of the file to which a row belongs. */
static struct pprof_sample *sample_of_row(struct pprof *pp, uint32_t thread, size_t row)
{
	const struct profile_samples *rows = &pp->p->threads[thread].samples[SAMPLE_CPU];
	struct pprof_memo *memo = &pp->memo[rows->stack[row].v];
	struct pprof_sample *found = NULL;
	uint32_t last = 0;

	if (memo->thread == thread)
		for (uint32_t i = memo->sample;; i = found->next) {
			found = &pp->samples.data[i];
			last = i;
			if (found->comm.v == rows->comm[row].v)
				return found;
			if (!found->next)
				break;
		}
	if (vec_push(&pp->samples,
		     (struct pprof_sample){.stack = rows->stack[row], .comm = rows->comm[row]})) {
		note_error(pp, -ENOMEM);
		return NULL;
	}
	if (memo->thread == thread)
		pp->samples.data[last].next = (uint32_t)pp->samples.count - 1;
	else
		*memo = (struct pprof_memo){thread, (uint32_t)pp->samples.count - 1};
	return &pp->samples.data[pp->samples.count - 1];
}

static void collect_samples(struct pprof *pp, uint32_t thread)
{
	const struct profile_samples *rows = &pp->p->threads[thread].samples[SAMPLE_CPU];

	pp->samples.count = 0;
	for (size_t i = 0; i < rows->count && !pp->error; i++) {
		struct pprof_sample *sample = sample_of_row(pp, thread, i);

		if (!sample)
			return;
		sample->ticks += profile_samples__ticks(rows, i);
		sample->cpu += rows->weight[i];
		if (i + 1 == rows->count)
			sample->cpu += pp->p->threads[thread].cpu_tail;
	}
}

static void write_thread(struct pprof *pp, uint32_t id)
{
	const struct profile_thread *thread = &pp->p->threads[id];
	struct string_id comm = thread->name;
	struct pprof_labels labels;

	collect_samples(pp, id);
	for (size_t i = 0; i < pp->samples.count && !pp->error; i++) {
		const struct pprof_sample *sample = &pp->samples.data[i];

		if (!i || sample->comm.v != comm.v)
			fill_labels(pp, thread, sample->comm, &labels);
		comm = sample->comm;
		collect_path(pp, sample->stack);
		write_sample(pp, sample->ticks, sample->cpu, &labels);
	}
	if (pp->samples.count || !thread->cpu_tail)
		return;
	fill_labels(pp, thread, comm, &labels);
	pp->path.count = 0;
	if (vec_push(&pp->path, location_number(pp, (struct location_id){0})))
		return note_error(pp, -ENOMEM);
	write_sample(pp, 0, thread->cpu_tail, &labels);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void fill_value_type(struct pprof *pp, Pprof__ValueType *message, const char *type,
			    const char *unit)
{
	pprof__value_type__init(message);
	message->type = text_number(pp, type);
	message->unit = text_number(pp, unit);
}

static void write_sample_types(struct pprof *pp)
{
	Pprof__ValueType message;

	fill_value_type(pp, &message, "samples", "count");
	write_message(pp, FIELD_SAMPLE_TYPE, &message.base);
	fill_value_type(pp, &message, "cpu", "nanoseconds");
	write_message(pp, FIELD_SAMPLE_TYPE, &message.base);
}

struct pprof_comments {
	struct pprof *pp;
	VEC(int64_t) numbers;
};

static int add_comment(void *context, const char *text)
{
	struct pprof_comments *comments = context;

	return vec_push(&comments->numbers, text_number(comments->pp, text));
}

/* The fields that are not tables: a profile that has nothing else. */
static void write_facts(struct pprof *pp)
{
	const struct profile *p = pp->p;
	struct pprof_comments comments = {.pp = pp};
	Pprof__Profile message = PPROF__PROFILE__INIT;
	Pprof__ValueType period_type;
	struct export_facts facts;
	int err = export_comments(p, add_comment, &comments);

	if (err)
		note_error(pp, err);
	fill_value_type(pp, &period_type, "cpu", "nanoseconds");
	message.time_nanos = (int64_t)p->start_realtime;
	message.duration_nanos = p->end > p->start ? (int64_t)(p->end - p->start) : 0;
	message.period_type = &period_type;
	message.period = (int64_t)p->period;
	message.n_comment = comments.numbers.count;
	message.comment = comments.numbers.data;
	/* what was read from folded stacks has counts alone, and pprof shows the default */
	export_facts__init(&facts, p);
	message.default_sample_type = text_number(pp, facts.cpu ? "cpu" : "samples");
	pack_message(pp, &message.base);
	write_bytes(pp, pp->packed.data, pp->packed.count);
	vec_free(&comments.numbers);
}

static void describe_dsos(struct pprof *pp)
{
	const struct profile *p = pp->p;

	for (size_t i = 1; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		struct pprof_dso *dso = &pp->dsos[l->dso.v];

		if (!dso->is_named)
			dso->is_named = profile_location__is_named(p, l);
		if (dso->knows_addresses || l->elf_address == PROFILE_UNKNOWN_ADDRESS)
			continue;
		dso->knows_addresses = true;
		dso->address_delta = l->elf_address - l->address;
	}
}

static int pprof__init(struct pprof *pp, const struct profile *p, FILE *out)
{
	*pp = (struct pprof){.p = p, .out = out};
	hashmap__init(&pp->function_map, function_equal, pp);
	pp->strings = strtab__new();
	pp->string_number = calloc(p->string_count + 1, sizeof(*pp->string_number));
	pp->location_number = calloc(p->location_count + 1, sizeof(*pp->location_number));
	pp->mapping_number = calloc(p->dso_count + 1, sizeof(*pp->mapping_number));
	pp->dsos = calloc(p->dso_count + 1, sizeof(*pp->dsos));
	pp->memo = calloc(p->stack_count + 1, sizeof(*pp->memo));
	return pp->strings && pp->string_number && pp->location_number && pp->mapping_number &&
			       pp->dsos && pp->memo
		       ? 0
		       : -ENOMEM;
}

static void pprof__fini(struct pprof *pp)
{
	vec_free(&pp->packed);
	strtab__free(pp->strings);
	free(pp->string_number);
	free(pp->location_number);
	vec_free(&pp->locations);
	free(pp->mapping_number);
	free(pp->dsos);
	vec_free(&pp->mappings);
	vec_free(&pp->functions);
	hashmap__fini(&pp->function_map);
	free(pp->memo);
	vec_free(&pp->samples);
	vec_free(&pp->path);
}

static int write_pprof(const struct export_request *request)
{
	const struct profile *p = request->profile;
	struct dso_id program = export_main_program(p);
	struct pprof pp;
	int err = pprof__init(&pp, p, request->out);

	if (!err) {
		describe_dsos(&pp);
		write_sample_types(&pp);
		if (program.v)
			mapping_number(&pp, program);
		for (uint32_t i = 1; i < p->thread_count && !pp.error; i++)
			write_thread(&pp, i);
		write_locations(&pp);
		write_mappings(&pp);
		write_functions(&pp);
		write_facts(&pp);
		write_strings(&pp);
		err = pp.error;
	}
	pprof__fini(&pp);
	return err;
}

static const char *const suffixes[] = {".pb.gz", NULL};

const struct exporter pprof_exporter = {
	.name = "pprof",
	.suffixes = suffixes,
	.description = "pprof, every process and thread as labels",
	.how_to_open = "run go tool pprof -http=: %s, or send it to Pyroscope or Parca",
	.may_gzip = true,
	.write = write_pprof,
};
