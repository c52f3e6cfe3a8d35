/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts become others by what they are (enum text_kind); each text of a kind once. Tables with texts
 * are copied, all other tables are those of the profile. What is not renamed here has no text in the
 * copy, because its strings are those of the copy alone: a forgotten field fails its tests.
 */
#include "profile/anonymize.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "profile/public_names.h"
#include "tenants/outside_books.h"

#define WORD_SIZE 12 /* letters or digits of a hashed word: 56 or 40 bits */
#define HEX_SIZE  16
#define HEX_LEAST 12 /* a longer run of hexadecimal digits is one word, as an id is */
#define TAG_SIZE  16 /* of "bpf_prog_0123456789abcdef_name" */
#define HIDDEN	  "left out by --anonymize"
#define BPF_PROG  "bpf_prog_"
#define CUT_MARK  "…"
#define KO	  ".ko" /* begins the suffix of a kernel module: ".ko", ".ko.xz" */

enum text_kind {
	TEXT_KEPT,
	TEXT_WORDS,   /* names of threads, hosts, control groups */
	TEXT_NATIVE,  /* functions of files; */
	TEXT_MANAGED, /* those of runtimes */
	TEXT_PATH,
	TEXT_CLAUSES, /* of filters */
	TEXT_KIND_COUNT
};

struct anonymous_profile {
	struct profile p;
	const struct profile *from;
	struct anonymous_key key;
	struct strtab *strings;
	uint32_t *known[TEXT_KIND_COUNT]; /* by string of `from`: its text, 0: not made yet */
	bool hides_kernel;		  /* which build it is: its release is hashed, or unknown */
	VEC(char) text;			  /* scratch */
	int error;			  /* the first one */

	/* copies */
	struct profile_dso *dsos;
	struct profile_function *functions;
	struct profile_line *lines;
	struct profile_process *processes;
	struct profile_fact *facts;
	struct profile_thread *threads;
	struct profile_jit *jits;
	struct profile_meta *meta;
	struct profile_outside *outside;
	struct profile_marker *markers;
	VEC(void *) columns; /* of threads */
};

struct anonymous_key anonymous_key__of(const void *secret, size_t size)
{
	static const uint64_t first[2] = {1, 0}, second[2] = {2, 0};

	return (struct anonymous_key){
		{hash_keyed(first, secret, size), hash_keyed(second, secret, size)}};
}

/* ---- words ----------------------------------------------------------------------------------- */

static void put(struct anonymous_profile *a, const char *bytes, size_t size)
{
	int err = vec_append(&a->text, bytes, size);

	a->error = a->error ?: err;
}

static void put_hash(struct anonymous_profile *a, const char *word, size_t size,
		     const char *letters, unsigned int count, size_t length)
{
	uint64_t hash = hash_keyed(a->key.words, word, size);
	char text[HEX_SIZE];

	for (size_t i = 0; i < length; i++, hash /= count)
		text[i] = letters[hash % count];
	put(a, text, length);
}

static void put_letters(struct anonymous_profile *a, const char *word, size_t size)
{
	size_t at = a->text.count;

	if (is_public_word(word, size) || strspn(word, "_") >= size) {
		put(a, word, size);
		return;
	}
	put_hash(a, word, size, "abcdefghijklmnopqrstuvwxyz", 26, WORD_SIZE);
	if (isupper((unsigned char)*word) && at < a->text.count)
		a->text.data[at] = (char)toupper(a->text.data[at]);
}

static void put_hex(struct anonymous_profile *a, const char *word, size_t size)
{
	put_hash(a, word, size, "0123456789abcdef", 16, HEX_SIZE);
}

static bool is_cut_mark(const char *at)
{
	return !strncmp(at, CUT_MARK, strlen(CUT_MARK));
}

static bool is_letter(const char *at)
{
	unsigned char c = (unsigned char)*at;

	return (isalpha(c) || c == '_' || c >= 0x80) && !is_cut_mark(at);
}

static size_t letters_at(const char *at)
{
	size_t size = 0;

	while (is_letter(at + size) && !public_mark(at + size))
		size++;
	return size;
}

static size_t digits_at(const char *at)
{
	return strspn(at, "0123456789");
}

static size_t hex_at(const char *at)
{
	return strspn(at, "0123456789abcdef");
}

/* "0x1f" */
static size_t address_at(const char *at)
{
	size_t digits = !strncmp(at, "0x", 2) ? strspn(at + 2, "0123456789abcdefABCDEF") : 0;

	return digits ? digits + 2 : 0;
}

static bool ends_word(const char *at)
{
	return !is_letter(at) && !isdigit((unsigned char)*at);
}

/*
 * What is written with hexadecimal digits: an address, which is kept, the tag of a BPF program, the
 * hash of a Rust function, an id. Returns the size; 0: it is something else.
 */
static size_t put_number(struct anonymous_profile *a, const char *at)
{
	size_t size = address_at(at);

	if (size) {
		put(a, at, size);
		return size;
	}
	size = hex_at(at);
	if (!strncmp(at, BPF_PROG, strlen(BPF_PROG)) && hex_at(at + strlen(BPF_PROG)) >= TAG_SIZE) {
		put(a, BPF_PROG, strlen(BPF_PROG));
		put_hex(a, at + strlen(BPF_PROG), TAG_SIZE);
		size = strlen(BPF_PROG) + TAG_SIZE;
		put(a, "_", at[size] == '_');
		return size + (at[size] == '_');
	}
	if (*at == 'h' && hex_at(at + 1) == HEX_SIZE && ends_word(at + 1 + HEX_SIZE)) {
		put(a, "h", 1);
		put_hex(a, at + 1, HEX_SIZE);
		return 1 + HEX_SIZE;
	}
	if (size < HEX_LEAST || !ends_word(at + size) || strcspn(at, "0123456789") >= size ||
	    digits_at(at) >= size)
		return 0;
	put_hex(a, at, size);
	return size;
}

/* "str2" */
static size_t public_word_with_digits(const char *at)
{
	size_t size = letters_at(at);

	size += size ? digits_at(at + size) : 0;
	return size && ends_word(at + size) && is_public_word(at, size) ? size : 0;
}

/* A word or a sign. Returns its size. */
static size_t put_word(struct anonymous_profile *a, const char *at, bool begins)
{
	size_t size = begins ? put_number(a, at) : 0;

	if (size)
		return size;
	size = public_mark(at);
	if (!size && begins)
		size = public_word_with_digits(at);
	if (size) {
		put(a, at, size);
		return size;
	}
	size = letters_at(at);
	if (size) {
		put_letters(a, at, size);
		return size;
	}
	size = digits_at(at);
	if (size) {
		put_hash(a, at, size, "0123456789", 10, WORD_SIZE);
		return size;
	}
	size = is_cut_mark(at) ? strlen(CUT_MARK) : 1;
	put(a, at, size);
	return size;
}

static void put_words(struct anonymous_profile *a, const char *text)
{
	bool begins = true;

	while (*text) {
		size_t size = put_word(a, text, begins);

		begins = ends_word(text + size - 1);
		text += size;
	}
}

/* Names of packages of a runtime are kept, those of their arguments are not. */
static void put_function(struct anonymous_profile *a, const char *name, enum name_language language)
{
	bool begins_word = true, begins = true;
	size_t whole = public_function(name);

	put(a, name, whole);
	name += whole;
	while (*name) {
		size_t size = begins ? public_qualified_name(name, language) : 0;

		if (size)
			put(a, name, size);
		else
			size = put_word(a, name, begins_word);
		begins_word = ends_word(name + size - 1);
		begins = begins_word && !strchr(".:/$", name[size - 1]);
		name += size;
	}
}

static void put_path(struct anonymous_profile *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *at = path + public_directory(path), *kept = public_source(path);

	if (!kept)
		kept = is_public_module(name) ? name : path + strlen(path);
	put(a, path, (size_t)(at - path));
	while (at < kept)
		at += put_word(a, at, at == path || ends_word(at - 1));
	put(a, at, strlen(at));
}

/* The size of "@10s-20s", "@10:00Z-10:05Z" or "--cpu=3"; 0: it has a name, as that of a marker. */
static size_t clause_without_name(const char *at)
{
	size_t size = *at == '@', digits;

	if (!strncmp(at, "--cpu=", 6) || !strncmp(at, "--state=", 8))
		return strcspn(at, " ");

	while (size && (digits = strspn(at + size, "0123456789.:-"))) {
		size += digits;
		size += min_u64(strspn(at + size, "numshdTZ"), 2); /* a unit */
	}
	return size > 1 && (!at[size] || at[size] == ' ') ? size : 0;
}

static void put_clauses(struct anonymous_profile *a, const char *text)
{
	bool begins = true;

	while (*text) {
		size_t size = begins ? clause_without_name(text) : 0;

		if (size)
			put(a, text, size);
		else
			size = put_word(a, text, begins);
		begins = text[size - 1] == ' ';
		text += size;
	}
}

static void put_text(struct anonymous_profile *a, enum text_kind kind, const char *text)
{
	switch (kind) {
	case TEXT_KEPT:
		put(a, text, strlen(text));
		break;
	case TEXT_WORDS:
		if (is_public_module(text))
			put(a, text, strlen(text));
		else
			put_words(a, text);
		break;
	case TEXT_NATIVE:
		put_function(a, text, NAME_NATIVE);
		break;
	case TEXT_MANAGED:
		put_function(a, text, NAME_MANAGED);
		break;
	case TEXT_PATH:
		put_path(a, text);
		break;
	case TEXT_CLAUSES:
		put_clauses(a, text);
		break;
	case TEXT_KIND_COUNT:
		break;
	}
	put(a, "", 1);
}

static struct string_id intern(struct anonymous_profile *a, const char *text)
{
	struct string_id id = {0};

	a->error = a->error ?: strtab__number(a->strings, text, &id.v);
	return id;
}

static struct string_id renamed(struct anonymous_profile *a, enum text_kind kind,
				struct string_id id)
{
	uint32_t *known = &a->known[kind][id.v];

	if (!id.v || *known || a->error)
		return (struct string_id){id.v ? *known : 0};
	a->text.count = 0;
	put_text(a, kind, profile__string(a->from, id));
	if (!a->error)
		*known = intern(a, a->text.data).v;
	return (struct string_id){*known};
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A copy of an array, or NULL: it is empty, or there is no memory. */
static void *copy(struct anonymous_profile *a, const void *array, size_t count, size_t size)
{
	void *to = count ? malloc(count * size) : NULL;

	if (to)
		memcpy(to, array, count * size);
	else if (count)
		a->error = a->error ?: -ENOMEM;
	return to;
}

#define COPY(a, field, count)                                                                      \
	((a)->field = copy((a), (a)->from->field, (a)->from->count, sizeof(*(a)->field)))

/* "[kernel.kallsyms]", "vmlinux-6.1" */
static bool is_kernel_image(const char *name)
{
	static const char *const begins[] = {"[kernel]", "[kernel.", "[guest.kernel", "vmlinux"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return !*name;
}

/* "[ext4]" or "ext4.ko.xz": perf has each module and BPF program as code of its own. */
static bool is_public_kernel_file(const char *name)
{
	size_t bracket = *name == '[';
	const char *suffix = strstr(name, KO);

	return is_public_kernel_module(name + bracket, suffix ? (size_t)(suffix - name) - bracket
							      : strcspn(name + bracket, "]"));
}

/*
 * A file without a directory is none that a process mapped: formats that do not say where code is
 * from have the name of the process there.
 */
static bool is_public_dso(const struct anonymous_profile *a, const struct profile_dso *dso)
{
	const char *path = profile__string(a->from, dso->path);
	const char *name = profile__string(a->from, dso->name);

	if (dso->kind == DSO_KERNEL)
		return is_kernel_image(name) || is_public_kernel_file(name);
	if (dso->kind == DSO_FILE && *path == '/' &&
	    (is_public_module(name) || public_source(path)))
		return true;
	return dso->kind == DSO_VDSO || (dso->is_interpreted && public_source(path));
}

/* Does its build-id say which kernel it is? */
static bool is_of_kernel(const struct profile_dso *dso)
{
	return dso->kind == DSO_KERNEL || dso->kind == DSO_VDSO;
}

static void hide_build_id(struct anonymous_profile *a, struct profile_dso *dso)
{
	uint64_t hash = hash_keyed(a->key.words, dso->build_id, dso->build_id_size);

	for (size_t i = 0; i < dso->build_id_size; i++) {
		if (i && i % sizeof(hash) == 0)
			hash = hash_keyed(a->key.words, &hash, sizeof(hash));
		dso->build_id[i] = (uint8_t)(hash >> (8 * (i % sizeof(hash))));
	}
}

static void rename_dsos(struct anonymous_profile *a)
{
	if (!COPY(a, dsos, dso_count))
		return;
	for (size_t i = 1; i < a->from->dso_count; i++) {
		struct profile_dso *dso = &a->dsos[i];
		bool is_public = is_public_dso(a, dso);
		bool has_release = dso->kind == DSO_KERNEL &&
				   is_kernel_image(profile__string(a->from, dso->name));

		dso->path = renamed(a, TEXT_PATH, dso->path);
		dso->name = renamed(a, is_public && !has_release ? TEXT_KEPT : TEXT_WORDS,
				    dso->name);
		if (!is_public || (is_of_kernel(dso) && a->hides_kernel))
			hide_build_id(a, dso);
		dso->inode = dso->inode_generation = 0;
		dso->major = dso->minor = 0;
	}
	a->p.dsos = a->dsos;
}

/* Those of modules have " [module]" behind them. */
static bool is_public_kernel_function(const char *name)
{
	const char *module = strstr(name, " [");

	if (!strncmp(name, BPF_PROG, strlen(BPF_PROG)))
		return false;
	return !module || is_public_kernel_module(module + 2, strcspn(module + 2, "]"));
}

static const char *source_of(const struct anonymous_profile *a,
			     const struct profile_function *function)
{
	const char *file = profile__string(a->from, function->definition_file);

	return *file ? file : profile__string(a->from, a->from->dsos[function->dso.v].path);
}

/* "JSONDecoder.decode". A program may well have a "dumps" of its own. */
static bool is_method(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot && dot > name && dot[1] && dot[1] != '<';
}

/*
 * By the function and its file alone: whatever else a profile has, a name is the same in all files
 * of a key. What many files have is kept in all of them (public_function()), since comparisons
 * merge functions by name.
 */
static enum text_kind kind_of_function(const struct anonymous_profile *a,
				       const struct profile_function *function)
{
	const struct profile_dso *dso = &a->from->dsos[function->dso.v];
	bool is_public = is_public_dso(a, dso);

	const char *name = profile__string(a->from, function->name);

	if (dso->kind == DSO_KERNEL)
		return is_public && is_public_kernel_function(name) ? TEXT_KEPT : TEXT_NATIVE;
	if (dso->is_interpreted ||
	    public_source(profile__string(a->from, function->definition_file)))
		is_public = public_source(source_of(a, function)) && is_method(name);
	if (is_public)
		return TEXT_KEPT;
	return dso_kind_is_made(dso->kind) ? TEXT_MANAGED : TEXT_NATIVE;
}

static void rename_functions(struct anonymous_profile *a)
{
	if (!COPY(a, functions, function_count))
		return;
	for (size_t i = 1; i < a->from->function_count; i++) {
		struct profile_function *function = &a->functions[i];
		enum text_kind kind = kind_of_function(a, function);

		function->name = renamed(a, kind, function->name);
		function->full_name = renamed(a, kind, function->full_name);
		function->definition_file = renamed(a, TEXT_PATH, function->definition_file);
	}
	a->p.functions = a->functions;
	COPY(a, lines, line_count);
	for (size_t i = 0; a->lines && i < a->from->line_count; i++)
		a->lines[i].file = renamed(a, TEXT_PATH, a->lines[i].file);
	a->p.lines = a->lines;
}

static void rename_processes(struct anonymous_profile *a)
{
	if (!COPY(a, processes, process_count))
		return;
	for (size_t i = 1; i < a->from->process_count; i++) {
		struct profile_process *process = &a->processes[i];

		process->name = renamed(a, TEXT_WORDS, process->name);
		process->cgroup = renamed(a, TEXT_WORDS, process->cgroup);
		process->program = renamed(a, TEXT_PATH, process->program);
#define X(field, label) process->names.field = renamed(a, TEXT_WORDS, process->names.field);
		PROCESS_NAMES(X)
#undef X
	}
	a->p.processes = a->processes;
	COPY(a, facts, fact_count);
	for (size_t i = 0; a->facts && i < a->from->fact_count; i++) {
		a->facts[i].key = renamed(a, TEXT_WORDS, a->facts[i].key);
		a->facts[i].value = renamed(a, TEXT_WORDS, a->facts[i].value);
	}
	a->p.facts = a->facts;
}

/* A column of a thread that the copy owns. */
static void *copy_column(struct anonymous_profile *a, const void *column, size_t count, size_t size)
{
	void *to = copy(a, column, count, size);

	if (to && vec_push(&a->columns, to)) {
		free(to);
		a->error = -ENOMEM;
		return NULL;
	}
	return to;
}

static void rename_thread(struct anonymous_profile *a, struct profile_thread *thread)
{
	struct profile_rename *renames = copy_column(a, thread->renames, thread->rename_count,
						     sizeof(*renames));

	thread->name = renamed(a, TEXT_WORDS, thread->name);
	for (size_t i = 0; renames && i < thread->rename_count; i++)
		renames[i].name = renamed(a, TEXT_WORDS, renames[i].name);
	thread->renames = renames;
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		struct profile_samples *samples = &thread->samples[kind];
		struct string_id *comm = copy_column(a, samples->comm, samples->count,
						     sizeof(*comm));

		for (size_t i = 0; comm && i < samples->count; i++)
			comm[i] = renamed(a, TEXT_WORDS, comm[i]);
		samples->comm = comm;
	}
}

static void rename_threads(struct anonymous_profile *a)
{
	if (!COPY(a, threads, thread_count))
		return;
	for (size_t i = 1; i < a->from->thread_count; i++)
		rename_thread(a, &a->threads[i]);
	a->p.threads = a->threads;
}

/* Sentences about runtimes are ours. */
static void rename_jits(struct anonymous_profile *a)
{
	struct profile_runtime *runtimes = copy_column(a, a->from->runtimes, a->from->runtime_count,
						       sizeof(*runtimes));

	COPY(a, jits, jit_count);
	for (size_t i = 0; a->jits && i < a->from->jit_count; i++) {
		struct profile_jit *jit = &a->jits[i];

		jit->runtime = renamed(a, TEXT_KEPT, jit->runtime);
		jit->remedy = renamed(a, TEXT_KEPT, jit->remedy);
		jit->refusal = renamed(a, TEXT_KEPT, jit->refusal);
		jit->map.path = renamed(a, TEXT_PATH, jit->map.path);
		jit->dump.path = renamed(a, TEXT_PATH, jit->dump.path);
	}
	a->p.jits = a->jits;
	for (size_t i = 0; runtimes && i < a->from->runtime_count; i++) {
		runtimes[i].name = renamed(a, TEXT_KEPT, runtimes[i].name);
		runtimes[i].remedy = renamed(a, TEXT_KEPT, runtimes[i].remedy);
	}
	a->p.runtimes = runtimes;
}

static void rename_markers(struct anonymous_profile *a)
{
	COPY(a, markers, marker_count);
	for (size_t i = 0; a->markers && i < a->from->marker_count; i++)
		a->markers[i].name = renamed(a, TEXT_WORDS, a->markers[i].name);
	a->p.markers = a->markers;
}

/* Users other than root get numbers in their order. */
static void rename_users(struct anonymous_profile *a)
{
	uint32_t last = 0, number = 0;

	COPY(a, outside, outside_count);
	for (size_t i = 0; a->outside && i < a->from->outside_count; i++) {
		uint32_t user = a->outside[i].user;

		if (!user || user == OUTSIDE_USER_UNKNOWN || user == OUTSIDE_USER_OTHERS)
			continue;
		number += user != last;
		last = user;
		a->outside[i].user = number;
	}
	a->p.outside = a->outside;
}

/* "6.1.0-18-shop" is "6.1.0-…-…" */
static struct string_id renamed_release(struct anonymous_profile *a, const char *release)
{
	size_t product = strspn(release, "Linux ");
	size_t kept = product + strspn(release + product, "0123456789.");

	a->text.count = 0;
	put(a, release, kept);
	put_words(a, release + kept);
	put(a, "", 1);
	return a->error ? (struct string_id){0} : intern(a, a->text.data);
}

static bool hides_kernel(struct anonymous_profile *a)
{
	const char *release = profile__meta(a->from, META_KERNEL_RELEASE);
	struct string_id id = release ? renamed_release(a, release) : (struct string_id){0};

	return !id.v || strcmp(strtab__get(a->strings, id.v), release) != 0;
}

/* "2 files on one time axis: a.sysprof, b.sysprof" without the names */
static struct string_id inputs_without_names(struct anonymous_profile *a, const char *inputs)
{
	a->text.count = 0;
	put(a, inputs, (size_t)((strstr(inputs, ": ") ?: inputs + strlen(inputs)) - inputs));
	put(a, "", 1);
	return a->error ? (struct string_id){0} : intern(a, a->text.data);
}

static bool is_one_of(const char *key, const char *const *keys, size_t count)
{
	return any_of(keys, count, known, !strcmp(*known, key));
}

/* The value of a fact; 0: it is left out. */
static struct string_id renamed_fact(struct anonymous_profile *a, const struct profile_meta *fact)
{
	static const char *const kept[] = {
		META_PRODUCT,	 META_ARCHITECTURE,   META_CPU,		META_CPU_COUNT,
		META_EVENT_UNIT, META_EVENT_PERIOD,   META_CLOCK,	META_CLOCK_REASON,
		META_HZ,	 META_PERIOD,	      META_CPU_CHANGES, META_CPU_TIME_METHOD,
		META_INTERRUPTS, META_SAMPLING_START, META_CPU_TIME,	META_FORMAT,
		META_UNTIMED,
	};
	static const char *const renamed_words[] = {META_HOSTNAME, META_COMMAND, META_TARGET,
						    META_EVENT};
	static const char *const hidden[] = {META_LINES_MISSING, META_FILES_NOT_READ,
					     META_NOT_READ};
	const char *key = profile__string(a->from, fact->key);
	const char *value = profile__string(a->from, fact->value);

	if (is_one_of(key, kept, sizeof(kept) / sizeof(*kept)))
		return renamed(a, TEXT_KEPT, fact->value);
	if (is_one_of(key, renamed_words, sizeof(renamed_words) / sizeof(*renamed_words)))
		return renamed(a, TEXT_WORDS, fact->value);
	if (is_one_of(key, hidden, sizeof(hidden) / sizeof(*hidden)))
		return intern(a, HIDDEN);
	if (!strcmp(key, META_KERNEL_RELEASE))
		return renamed_release(a, value);
	if (!strcmp(key, META_KERNEL_BUILD_ID) && !a->hides_kernel)
		return renamed(a, TEXT_KEPT, fact->value);
	return !strcmp(key, META_INPUTS) ? inputs_without_names(a, value) : (struct string_id){0};
}

static void rename_meta(struct anonymous_profile *a)
{
	size_t count = 0;

	COPY(a, meta, meta_count);
	for (size_t i = 0; a->meta && i < a->from->meta_count; i++) {
		struct profile_meta fact = a->meta[i];

		fact.value = renamed_fact(a, &fact);
		if (!fact.value.v)
			continue;
		fact.key = renamed(a, TEXT_KEPT, fact.key);
		a->meta[count++] = fact;
	}
	a->p.meta = a->meta;
	a->p.meta_count = count;
}

static void rename_types(struct anonymous_profile *a)
{
	struct profile_clause *clauses = copy_column(a, a->from->clauses, a->from->clause_count,
						     sizeof(*clauses));
	struct profile_sample_type *types = copy_column(a, a->from->sample_types,
							a->from->sample_type_count, sizeof(*types));

	for (size_t i = 0; types && i < a->from->sample_type_count; i++) {
		types[i].name = renamed(a, TEXT_KEPT, types[i].name);
		types[i].unit = renamed(a, TEXT_KEPT, types[i].unit);
	}
	a->p.sample_types = types;
	for (size_t i = 0; clauses && i < a->from->clause_count; i++)
		clauses[i].text = renamed(a, TEXT_CLAUSES, clauses[i].text);
	a->p.clauses = clauses;
	a->p.filter = renamed(a, TEXT_CLAUSES, a->from->filter);
	a->p.event = renamed(a, TEXT_WORDS, a->from->event);
	a->p.event_unit = renamed(a, TEXT_WORDS, a->from->event_unit);
}

/* Sources are full of names, and code has strings and the build of its program. */
static void drop_code(struct anonymous_profile *a)
{
	a->p.code_count = a->p.code_row_count = a->p.source_count = 0;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static int allocate(struct anonymous_profile *a)
{
	a->strings = strtab__new();
	if (!a->strings)
		return -ENOMEM;
	for (int kind = 0; kind < TEXT_KIND_COUNT; kind++) {
		a->known[kind] = calloc(a->from->string_count, sizeof(*a->known[kind]));
		if (!a->known[kind])
			return -ENOMEM;
	}
	return 0;
}

int anonymous_profile__new(const struct profile *p, struct anonymous_key key,
			   struct anonymous_profile **anonymous)
{
	struct anonymous_profile *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->p = *p;
	a->from = p;
	a->key = key;
	a->error = allocate(a);
	if (!a->error) {
		a->hides_kernel = hides_kernel(a);
		rename_types(a);
		rename_dsos(a);
		rename_functions(a);
		rename_processes(a);
		rename_threads(a);
		rename_jits(a);
		rename_users(a);
		rename_markers(a);
		rename_meta(a);
		drop_code(a);
	}
	if (a->error) {
		int err = a->error;

		anonymous_profile__free(a);
		return err;
	}
	a->p.strings = strtab__array(a->strings);
	a->p.string_count = strtab__count(a->strings);
	*anonymous = a;
	return 0;
}

void anonymous_profile__free(struct anonymous_profile *a)
{
	if (!a)
		return;
	for (int kind = 0; kind < TEXT_KIND_COUNT; kind++)
		free(a->known[kind]);
	strtab__free(a->strings);
	vec_free(&a->text);
	free(a->dsos);
	free(a->functions);
	free(a->lines);
	free(a->processes);
	free(a->facts);
	free(a->threads);
	free(a->jits);
	free(a->meta);
	free(a->outside);
	free(a->markers);
	vec_free_with(&a->columns, column, free(*column));
	free(a);
}

const struct profile *anonymous_profile__get(const struct anonymous_profile *a)
{
	return &a->p;
}
