/* SPDX-License-Identifier: BSD-2-Clause */
/* An anonymous profile has no name of the host it is from, in any format, and all else of it. */
#include "base/cleanup.h"
#include "profile/anonymize.h"

#include "compare/names.h"
#include "import_support.h"
#include "formats/out/html_data.h"
#include "profile/profile_check.h"
#include "tenants/outside_books.h"

static const char secret_key[] = "0123456789abcdef";

static struct anonymous_key key_of(const char *secret)
{
	return anonymous_key__of(secret, strlen(secret));
}

static struct anonymous_profile *anonymize(const struct profile *p, const char *secret)
{
	struct anonymous_profile *a = NULL;
	char why[256] = "";

	assert_int_equal(anonymous_profile__new(p, key_of(secret), &a), 0);
	if (profile_check(anonymous_profile__get(a), why, sizeof(why)))
		fail_msg("%s", why);
	return a;
}

static void cleanup_anonymous(struct anonymous_profile **a)
{
	anonymous_profile__free(*a);
}
#define _cleanup_anonymous_ _cleanup_(cleanup_anonymous)

/* ---- one text -------------------------------------------------------------------------------- */

/* A function of a file or of a runtime, in a profile of its own. */
static void put_function(FILE *out, enum dso_kind kind, const char *name)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	struct thread_id thread;
	struct location_id at;

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	at = add_location(&f,
			  kind == DSO_FILE     ? f.program
			  : kind == DSO_KERNEL ? f.kernel
					       : f.jit,
			  0x10);
	NAME(&f, at, {.function = name});
	add_sample(&f, thread, 1, STACK(&f, at), 1, "a");
	a = anonymize(finish(&f), secret_key);
	fputs(profile__string(anonymous_profile__get(a),
			      anonymous_profile__get(a)->functions[1].name),
	      out);
}

static void put_native(FILE *out, char *name)
{
	put_function(out, DSO_FILE, name);
}

static void put_managed(FILE *out, char *name)
{
	put_function(out, DSO_JIT, name);
}

static void put_kernel(FILE *out, char *name)
{
	put_function(out, DSO_KERNEL, name);
}

/* "[acme_drv] acme_ioctl": the name of the code that a function is in, and the function. */
static void put_code(FILE *out, enum dso_kind kind, char *input)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	const char *path = strsep(&input, " ");
	const struct profile *p;
	struct thread_id thread;
	struct location_id at;

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	at = add_location(&f, add_dso(&f, kind, path, 0), 0x10);
	NAME(&f, at, {.function = input});
	add_sample(&f, thread, 1, STACK(&f, at), 1, "a");
	a = anonymize(finish(&f), secret_key);
	p = anonymous_profile__get(a);
	fprintf(out, "%s %s", profile__string(p, p->dsos[p->locations[1].dso.v].name),
		profile__string(p, p->functions[1].name));
}

static void put_kernel_code(FILE *out, char *input)
{
	put_code(out, DSO_KERNEL, input);
}

static void put_file_code(FILE *out, char *input)
{
	put_code(out, DSO_FILE, input);
}

/* The program of a process, and its control group. */
static void put_process(FILE *out, const char *text, bool is_path)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	const struct profile_process *process;
	struct string_id id;

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	id = profile_builder__string(f.b, text);
	profile_builder__get_process(f.b, f.process)->program = id;
	profile_builder__get_process(f.b, f.process)->cgroup = id;
	a = anonymize(finish(&f), secret_key);
	process = &anonymous_profile__get(a)->processes[1];
	fputs(profile__string(anonymous_profile__get(a),
			      is_path ? process->program : process->cgroup),
	      out);
}

static void put_path(FILE *out, char *path)
{
	put_process(out, path, true);
}

static void put_words(FILE *out, char *text)
{
	put_process(out, text, false);
}

static void put_filter(FILE *out, char *text)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	struct profile_clause clause = {};
	struct profile p;

	fixture__init(&f, 10);
	clause.text = profile_builder__string(f.b, text);
	p = *finish(&f);
	p.filter = clause.text;
	p.clauses = &clause;
	p.clause_count = 1;
	a = anonymize(&p, secret_key);
	fputs(profile__string(anonymous_profile__get(a), anonymous_profile__get(a)->filter), out);
}

static const struct text_verb verbs[] = {
	{"native", put_native},	      {"managed", put_managed}, {"kernel", put_kernel},
	{"path", put_path},	      {"words", put_words},	{"kernel code", put_kernel_code},
	{"file code", put_file_code}, {"filter", put_filter},	{}};

/* ---- all texts ------------------------------------------------------------------------------- */

/* Words that are planted wherever a profile has a text of its host. */
static const char *const secrets[] = {
	"acmefunction",	    "acmefull",	     "acmesource", "acmeline",	  "acmedir",
	"acmelib",	    "acmecomm",	     "acmerename", "acmeprocess", "acmegroup",
	"acmeprogram",	    "acmekey",	     "acmevalue",  "acmehost",	  "acmecommand",
	"acmetarget",	    "acmerelease",   "acmemap",	   "acmedump",	  "acmelost",
	"acmemeta",	    "acmeevent",     "acmeuser",   "acmescript",  "acmemodule",
	"acmename-service", "acmename-user",
};
#define SECRETS (sizeof(secrets) / sizeof(*secrets))

static struct location_id plant_function(struct fixture *f, struct dso_id dso, uint64_t address,
					 const char *name)
{
	const struct profile_function function = {
		.name = text(f, name),
		.full_name = text(f, "acmefull(int)"),
		.dso = dso,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = text(f, "/acmedir/acmesource.c"),
		.definition_line = 3,
	};
	struct profile_line line = {.file = text(f, "/acmedir/acmeline.h"), .line = 7};
	struct location_id at = add_location(f, dso, address);

	line.function = profile_builder__function(f->b, &function);
	profile_builder__resolve(f->b, at, address, &line, 1);
	return at;
}

static void plant_facts(struct fixture *f)
{
	const struct profile_fact fact = {text(f, "acmekey"), text(f, "acmevalue")};
	static const char *const meta[][2] = {
		{META_HOSTNAME, "db1.acmehost"},
		{META_COMMAND, "sysprof record -- ./acmecommand"},
		{META_TARGET, "-- ./acmetarget"},
		{META_KERNEL_RELEASE, "6.1.0-acmerelease"},
		{META_LINES_MISSING, "/acmelost: too large"},
		{META_NOT_READ, "/acmelost: 3 samples"},
		{META_INPUTS, "2 files one after the other: acmelost.sysprof, b"},
		{META_EVENT, "acmeevent"},
		{"acmekey", "acmemeta"},
	};
	struct profile_process *process;

	profile_builder__process_facts(f->b, f->process, FACTS_STATE_WHOLE, &fact, 1);
	process = profile_builder__get_process(f->b, f->process);
	process->cgroup = text(f, "/acmegroup.slice");
	process->program = text(f, "/acmedir/acmeprogram");
#define X(field, label) process->names.field = text(f, "acmename-" #field);
	PROCESS_NAMES(X)
#undef X
	for (size_t i = 0; i < sizeof(meta) / sizeof(*meta); i++)
		profile_builder__meta(f->b, meta[i][0], meta[i][1]);
}

static const struct profile *plant(struct fixture *f)
{
	struct profile_dso script = {.kind = DSO_RUNTIME, .is_interpreted = true};
	struct profile_jit jit = {.samples = 1, .unnamed = 1};
	struct thread_id thread;
	struct location_id at[4];

	fixture__init(f, 10);
	f->process = add_process(f, 9, "acmeprocess", 0, 0);
	thread = add_thread(f, f->process, 9, true, "acmerename", 0);
	profile_builder__thread_renamed(f->b, thread, AT(2), text(f, "acmerename"));
	script.path = text(f, "/acmedir/acmescript.py");
	script.name = text(f, "acmescript.py");
	at[0] = plant_function(f, add_dso(f, DSO_FILE, "/acmedir/libacmelib.so", 17), 1,
			       "acmefunction");
	at[1] = plant_function(f, profile_builder__dso(f->b, &script), 2, "acmefunction.run");
	at[2] = plant_function(f, f->kernel, 3, "acmefunction [acmemodule]");
	at[3] = add_location(f, add_dso(f, DSO_FILE, "/acmedir/libacmeuser.so", 0), 4);
	add_sample(f, thread, 1, STACK(f, at[0], at[1], at[3]), 1, "acmecomm");
	add_sample(f, thread, 3, STACK(f, at[0], at[2]), 1, "acmerename");
	plant_facts(f);
	jit.process = f->process;
	jit.map = (struct profile_jit_file){.path = text(f, "/tmp/acmemap.map")};
	jit.dump = (struct profile_jit_file){.path = text(f, "/tmp/acmedump.dump")};
	profile_builder__jit(f->b, &jit);
	profile_builder__outside(f->b, &(struct profile_outside){.user = 4711, .count = 1});
	return finish(f);
}

/* Not compressed: a page's profile as it is before. */
static char *bytes_of(const struct exporter *exporter, const struct profile *p, size_t *size)
{
	const struct export_request options = {.lines = true};
	char *bytes = NULL;
	FILE *out;

	if (exporter != &html_exporter)
		return export_bytes(exporter, p, &options, size);
	out = open_memstream(&bytes, size);
	assert_int_equal(html_write_data(p, NULL, NULL, out), 0);
	fclose(out);
	return bytes;
}

TEST(no_format_of_an_anonymous_profile_has_a_name_of_its_host)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = plant(&f);
	_cleanup_anonymous_ struct anonymous_profile *a = anonymize(p, secret_key);
	bool planted[SECRETS] = {};

	for (size_t i = 0; exporters()[i]; i++) {
		size_t open_size, size;
		_cleanup_free_ char *open = bytes_of(exporters()[i], p, &open_size);
		_cleanup_free_ char *hidden = bytes_of(exporters()[i], anonymous_profile__get(a),
						       &size);

		for (size_t k = 0; k < SECRETS; k++) {
			planted[k] |= memmem(open, open_size, secrets[k], strlen(secrets[k])) !=
				      NULL;
			if (memmem(hidden, size, secrets[k], strlen(secrets[k])))
				fail_msg("%s has %s", exporters()[i]->name, secrets[k]);
		}
		assert_null(memmem(hidden, size, "acme", 4));
		assert_null(memmem(hidden, size, "4711", 4));
	}
	/* no format need show the program of a process and its facts */
	for (size_t k = 0; k < SECRETS; k++)
		assert_true(planted[k] || !strcmp(secrets[k], "acmeprogram") ||
			    !strcmp(secrets[k], "acmevalue"));
	for (size_t i = 0; i < anonymous_profile__get(a)->string_count; i++)
		assert_null(strstr(anonymous_profile__get(a)->strings[i], "acme"));
}

static bool is_of_kernel(const struct profile *p, size_t function)
{
	return p->dsos[p->functions[function].dso.v].kind == DSO_KERNEL;
}

/* Everything but texts. */
static void check_shape(const struct profile *p, const struct profile *a)
{
	assert_int_equal(a->sample_count, p->sample_count);
	assert_int_equal(a->event_count, p->event_count);
	assert_int_equal(a->stack_count, p->stack_count);
	assert_int_equal(a->thread_count, p->thread_count);
	assert_int_equal(a->function_count, p->function_count);
	assert_ptr_equal(a->stacks, p->stacks);
	for (size_t t = 1; t < p->thread_count; t++)
		for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
			assert_ptr_equal(a->threads[t].samples[kind].stack,
					 p->threads[t].samples[kind].stack);
			assert_ptr_equal(a->threads[t].samples[kind].weight,
					 p->threads[t].samples[kind].weight);
		}
	/* equal names are equal, others are not; the kernel keeps its own */
	for (size_t i = 1; i < p->function_count; i++)
		for (size_t k = 1; k < i; k++)
			if (is_of_kernel(p, i) == is_of_kernel(p, k))
				assert_int_equal(a->functions[i].name.v == a->functions[k].name.v,
						 p->functions[i].name.v == p->functions[k].name.v);
}

TEST(the_shape_of_a_profile_stays)
{
	_cleanup_fixture_ struct fixture f;

	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		const struct profile *p = build_profile(&f, named_profiles[i].name);
		_cleanup_anonymous_ struct anonymous_profile *a = anonymize(p, secret_key);

		check_shape(p, anonymous_profile__get(a));
		profile_builder__free(f.b);
	}
	const struct profile *p = build_random(&f, 3, 8, 400);
	_cleanup_anonymous_ struct anonymous_profile *a = anonymize(p, secret_key);

	check_shape(p, anonymous_profile__get(a));
}

static const char *const names_of_many[] = {"_start", "memcpy",	    "__memcpy_avx_unaligned_erms",
					    "main",   "decode",	    "acme_checkout",
					    "sort",   "_int_malloc"};
#define NAMES_OF_MANY (sizeof(names_of_many) / sizeof(*names_of_many))

static void sample_names_in(struct fixture *f, struct thread_id thread, struct dso_id dso,
			    uint64_t address)
{
	for (size_t i = 0; i < NAMES_OF_MANY; i++) {
		struct location_id at = add_location(f, dso, address + i);

		NAME(f, at, {.function = names_of_many[i]});
		add_sample(f, thread, address + i, STACK(f, at), 1, "a");
	}
}

/* Of a program's functions; with files that are kept and have functions of the same names, or not. */
static struct anonymous_profile *anonymize_names(struct fixture *f, bool with_public_files)
{
	static const char *const files[] = {"/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib/libc.so.6",
					    "/usr/bin/python3.11"};
	struct thread_id thread;

	fixture__init(f, 10);
	f->process = add_process(f, 1, "a", 0, 0);
	thread = add_thread(f, f->process, 1, true, "a", 0);
	sample_names_in(f, thread, f->program, 100);
	if (!with_public_files)
		return anonymize(finish(f), secret_key);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		sample_names_in(f, thread, add_dso(f, DSO_FILE, files[i], 0), 1000 + 100 * i);
	sample_names_in(f, thread, f->kernel, 2000);
	return anonymize(finish(f), secret_key);
}

TEST(what_else_a_profile_has_does_not_decide_whether_a_name_is_kept)
{
	_cleanup_fixture_ struct fixture f, g;
	_cleanup_anonymous_ struct anonymous_profile *alone = anonymize_names(&f, false);
	_cleanup_anonymous_ struct anonymous_profile *among = anonymize_names(&g, true);
	const struct profile *p = anonymous_profile__get(alone);
	const struct profile *q = anonymous_profile__get(among);

	for (size_t i = 0; i < NAMES_OF_MANY; i++) {
		const char *name = profile__string(p, p->functions[i + 1].name);
		bool is_hidden = !strncmp(names_of_many[i], "acme", 4);

		assert_string_equal(name, profile__string(q, q->functions[i + 1].name));
		assert_int_equal(!strcmp(name, names_of_many[i]), !is_hidden);
	}
}

/* ---- names that comparisons take for one ----------------------------------------------------- */

static bool same_for_comparisons(const struct profile *p, size_t one, size_t other)
{
	char first[256], second[256];

	stable_name(first, sizeof(first), profile__string(p, p->functions[one].name));
	stable_name(second, sizeof(second), profile__string(p, p->functions[other].name));
	return !strcmp(first, second);
}

static const char *const stems[] = {
	"acme",	  "acme::run", "com.acme.Run.call", "main.run",
	"strcpy", "DataAcme",  "[libacme.so]",	    "[libacme-1.2.so.3]"};
static const char *const ends[] = {
	"",
	".isra.0",
	".constprop.1",
	".cold",
	".part.3.cold",
	".llvm.12345678901234567890",
	".str2",
	".str2.7",
	"::h0123456789abcdef",
	"::h0123456789abcdee",
	"+0x1f",
	"+0x20",
	" [clone .isra.0]",
	".func1",
	".func2.3",
	".gowrap1",
	"$_0",
	"$_1",
	"#2",
	"#3",
	"lambda$12",
	"lambda$13",
	"$lambda$main$0",
	"$lambda$main$1",
	"$$Lambda$14/0x7f12.run",
	"$$Lambda$15/0x7a.run",
	"MethodAccessor12",
	"MethodAccessor3",
	"__unnamed_1",
	"_lambda_4",
	"_lambda_55",
	"{closure#0}",
	"{closure#1}",
	"$anonfun$3",
	".Lambda$MH/0x7f",
	"1",
	"2",
	".1",
	".other",
	"Accessor",
	"lambda",
	"(int, acme)",
	"<int>::get",
};
#define STEMS (sizeof(stems) / sizeof(*stems))
#define ENDS  (sizeof(ends) / sizeof(*ends))

TEST(names_that_comparisons_take_for_one_are_so_without_names)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	const struct profile *p, *q;
	struct thread_id thread;

	fixture__init(&f, 10);
	f.process = add_process(&f, 1, "a", 0, 0);
	thread = add_thread(&f, f.process, 1, true, "a", 0);
	for (size_t i = 0; i < STEMS * ENDS; i++) {
		struct location_id at = add_location(&f, f.program, 1 + i);
		char name[64];

		snprintf(name, sizeof(name), "%s%s", stems[i / ENDS], ends[i % ENDS]);
		NAME(&f, at, {.function = name});
		add_sample(&f, thread, 1 + i, STACK(&f, at), 1, "a");
	}
	p = finish(&f);
	a = anonymize(p, secret_key);
	q = anonymous_profile__get(a);
	for (size_t i = 1; i < p->function_count; i++)
		for (size_t k = 1; k < i; k++)
			if (same_for_comparisons(p, i, k) != same_for_comparisons(q, i, k))
				fail_msg("%s and %s are %s and %s",
					 profile__string(p, p->functions[i].name),
					 profile__string(p, p->functions[k].name),
					 profile__string(q, q->functions[i].name),
					 profile__string(q, q->functions[k].name));
}

TEST(the_same_key_gives_the_same_file_and_another_key_another)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = plant(&f);
	_cleanup_anonymous_ struct anonymous_profile *one = anonymize(p, secret_key);
	_cleanup_anonymous_ struct anonymous_profile *two = anonymize(p, secret_key);
	_cleanup_anonymous_ struct anonymous_profile *other = anonymize(p, "0123456789abcdeg");
	_cleanup_free_ char *first = export_text(&folded_exporter, anonymous_profile__get(one),
						 NULL);
	_cleanup_free_ char *second = export_text(&folded_exporter, anonymous_profile__get(two),
						  NULL);
	_cleanup_free_ char *third = export_text(&folded_exporter, anonymous_profile__get(other),
						 NULL);

	assert_string_equal(first, second);
	assert_string_not_equal(first, third);
}

TEST(build_ids_of_public_files_alone_are_kept)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p;
	const struct profile_dso *dsos;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	struct dso_id libc, shop;

	fixture__init(&f, 10);
	libc = add_dso(&f, DSO_FILE, "/usr/lib/libc.so.6", 18);
	shop = add_dso(&f, DSO_FILE, "/usr/lib/libshop.so", 19);
	p = finish(&f);
	a = anonymize(p, secret_key);
	dsos = anonymous_profile__get(a)->dsos;
	assert_memory_equal(dsos[libc.v].build_id, p->dsos[libc.v].build_id, 18);
	assert_int_equal(dsos[shop.v].build_id_size, 19);
	assert_memory_not_equal(dsos[shop.v].build_id, p->dsos[shop.v].build_id, 19);
}

static void assert_kernel_id_is_kept(const char *release, bool is_kept)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;
	const struct profile *p, *hidden;
	struct dso_id kernel, vdso;

	fixture__init(&f, 10);
	kernel = add_dso(&f, DSO_KERNEL, "[kernel]", 20);
	vdso = add_dso(&f, DSO_VDSO, "[vdso]", 20);
	profile_builder__meta(f.b, META_KERNEL_RELEASE, release);
	profile_builder__meta(f.b, META_KERNEL_BUILD_ID, "c0ffee");
	p = finish(&f);
	a = anonymize(p, secret_key);
	hidden = anonymous_profile__get(a);
	assert_int_equal(profile__meta(hidden, META_KERNEL_BUILD_ID) != NULL, is_kept);
	for (size_t i = 0; i < 2; i++) {
		uint32_t id = (i ? vdso : kernel).v;

		assert_int_equal(!memcmp(hidden->dsos[id].build_id, p->dsos[id].build_id, 20),
				 is_kept);
	}
}

TEST(the_build_id_of_a_kernel_whose_release_is_hashed_is_not_kept)
{
	assert_kernel_id_is_kept("6.12.3", true);
	assert_kernel_id_is_kept("6.12.3-acme", false);
}

TEST(what_stands_for_cpu_time_and_the_number_of_inputs_stay)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_anonymous_ struct anonymous_profile *a = NULL;

	fixture__init(&f, 10);
	profile_builder__meta(f.b, META_CPU_TIME, "wall-clock time: none");
	profile_builder__meta(f.b, META_INPUTS, "2 files on one time axis: shop.sysprof, b");
	a = anonymize(finish(&f), secret_key);
	assert_string_equal(profile__meta(anonymous_profile__get(a), META_CPU_TIME),
			    "wall-clock time: none");
	assert_string_equal(profile__meta(anonymous_profile__get(a), META_INPUTS),
			    "2 files on one time axis");
}

/* Its format has no files of native code, which become one that is called as the process. */
TEST(functions_of_a_cpuprofile_of_a_public_program_are_hashed)
{
	static const char *const programs[] = {"python3", "node", "/usr/bin/node"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		_cleanup_fixture_ struct fixture f;
		_cleanup_anonymous_ struct anonymous_profile *a = NULL;
		_cleanup_imported_ struct imported read;
		struct location_id at[2];
		struct thread_id thread;
		char *bytes;
		size_t size;

		fixture__init(&f, 10);
		f.process = add_process(&f, 7, programs[i], 0, 0);
		thread = add_thread(&f, f.process, 7, true, "worker", 0);
		at[0] = plant_function(&f, f.program, 0x10, "acmefunction");
		at[1] = add_location(&f, f.program, 0x20);
		NAME(&f, at[1], {.function = "acmenative"});
		add_sample(&f, thread, 1, STACK(&f, at[0], at[1]), 1, "worker");
		bytes = export_bytes(&cpuprofile_exporter, finish(&f), NULL, &size);
		assert_non_null(memmem(bytes, size, "acmefunction", 12));
		assert_non_null(memmem(bytes, size, "acmenative", 10));
		read = import_bytes(bytes, size);
		free(bytes);
		assert_int_equal(read.err, 0);
		a = anonymize(read.p, secret_key);
		for (size_t k = 0; k < anonymous_profile__get(a)->string_count; k++)
			assert_null(strstr(anonymous_profile__get(a)->strings[k], "acme"));
	}
}

TEXT_TABLE("anonymize", verbs, NULL, NULL);
