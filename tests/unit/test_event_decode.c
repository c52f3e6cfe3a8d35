/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking events: one sound event of each type, every way to break it. */
#include "unit.h"
#include "base/cleanup.h"
#include "stream/event_decode.h"
#include "stream/symbol_blob.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

union event {
	struct event_header header;
	struct sample_event sample;
	struct visit_event visit;
	struct mmap_event mmap;
	struct comm_event comm;
	struct lost_event lost;
	struct process_event process;
	struct cgroup_event cgroup;
	struct facts_event facts;
	struct thread_event thread;
	struct books_event books;
	struct meta_event meta;
	struct kallsyms_event kallsyms;
	struct jit_file_event jit_file;
	struct jit_bytes_event jit_bytes;
	struct symbol_event symbol;
	struct code_text_event text;
	struct code_lines_event lines;
	struct source_event source;
	struct source_root_event source_root;
	char bytes[EVENT_SIZE_MAX];
};

/* ---- sound events ---------------------------------------------------------------------------- */

static void make(union event *e, enum event_type type, size_t size)
{
	memset(e, 0, sizeof(*e));
	e->header.type = type;
	e->header.size = size;
	e->header.time = 42;
}

static void make_sample(union event *e)
{
	make(e, EVENT_SAMPLE, sizeof(e->sample) + 5 * sizeof(uint64_t));
	e->sample.kernel_frames = 2;
	e->sample.user_frames = 3;
	e->sample.frames[0] = 0xffffffff81000010;
	e->sample.frames[1] = 0xff11000000000020; /* 5-level paging */
	e->sample.frames[2] = frame_pack(FRAME_IP, 0x401000);
	e->sample.frames[3] = frame_pack(FRAME_POINTER, 0x401100);
	e->sample.frames[4] = frame_pack(FRAME_TABLE, 0x401200);
}

static void make_visit(union event *e)
{
	union event *stack = malloc(sizeof(*stack));

	make_sample(stack);
	make(e, EVENT_VISIT, sizeof(e->visit.account) + stack->header.size);
	memcpy(&e->visit.stack, stack, stack->header.size);
	e->visit.account.seen = 41;
	e->visit.account.unchanged = 40;
	e->visit.account.call = 202;
	e->visit.account.found = VISIT_IO_WAIT;
	free(stack);
}

static void make_visit_books(union event *e)
{
	struct visit_books_event *books = (struct visit_books_event *)e;

	make(e, EVENT_VISIT_BOOKS, sizeof(*books));
	books->lines = VISIT_LINE_COUNT;
	books->hz = 20;
}

static void make_cpu_times(union event *e)
{
	struct cpu_times_event *times = (struct cpu_times_event *)e;

	make(e, EVENT_CPU_TIMES, sizeof(*times));
	times->kinds = CPU_TIME_COUNT;
}

static struct stack_copy *copy_of(union event *e)
{
	return (struct stack_copy *)&e->sample.frames[5];
}

static void make_copy(union event *e)
{
	make_sample(e);
	e->header.size += sizeof(struct stack_copy) + 64;
	e->header.flags |= EVENT_STACK_COPY;
	*copy_of(e) = (struct stack_copy){.ip = 0x401000, .size = 64};
}

static void make_mmap(union event *e)
{
	make(e, EVENT_MMAP, sizeof(e->mmap) + 16);
	strcpy(e->mmap.path, "/usr/bin/cat");
}

static void make_process(union event *e)
{
	make(e, EVENT_PROCESS, sizeof(e->process) + 8);
	strcpy(e->process.name, "cat");
}

static void make_cgroup(union event *e)
{
	make(e, EVENT_CGROUP, sizeof(e->cgroup) + 16);
	strcpy(e->cgroup.path, "/user.slice");
}

static void make_facts(union event *e)
{
	static const char text[] = "exe\0/bin/cat\0env:A\0"; /* the last value is empty */

	make(e, EVENT_FACTS, event_aligned(sizeof(e->facts) + sizeof(text)));
	e->facts.state = FACTS_STATE_WHOLE;
	e->facts.since = 42;
	e->facts.count = 2;
	e->facts.size = sizeof(text);
	memcpy(e->facts.text, text, sizeof(text));
}

static void make_meta(union event *e)
{
	make(e, EVENT_META, sizeof(e->meta) + 16);
	memcpy(e->meta.text, "key\0value", 10);
}

static void make_kallsyms(union event *e)
{
	make(e, EVENT_KALLSYMS, sizeof(e->kallsyms) + 24);
	memcpy(e->kallsyms.text, "ffffffff81000000 T _text\n", 24);
	e->kallsyms.text_size = 24;
}

static void make_jit_file(union event *e)
{
	make(e, EVENT_JIT_FILE, sizeof(e->jit_file) + 16);
	e->jit_file.file = 1;
	strcpy(e->jit_file.path, "/tmp/perf-1.map");
}

static void make_jit_bytes(union event *e)
{
	make(e, EVENT_JIT_BYTES, sizeof(e->jit_bytes) + 16);
	e->jit_bytes.file = 1;
	e->jit_bytes.after = 10;
	e->jit_bytes.before = 20;
	e->jit_bytes.size = 13;
	memcpy(e->jit_bytes.bytes, "1000 100 name", 13);
}

static void make_jit_clock(union event *e)
{
	struct jit_clock_event *clock = (struct jit_clock_event *)e;

	make(e, EVENT_JIT_CLOCK, sizeof(*clock));
	clock->file = 1;
}

static void make_code_function(union event *e)
{
	static const char strings[16] = "function\0a/b.js";
	struct code_function_event *function = (struct code_function_event *)e;

	make(e, EVENT_CODE_FUNCTION,
	     sizeof(*function) + 2 * sizeof(function->rows[0]) + sizeof(strings));
	function->kind = FRAME_NOTE_V8;
	function->state = CODE_STATE_CONFIRMED;
	function->name_size = 9;
	function->file_size = 7;
	function->row_count = 2;
	function->rows[1].offset = 10;
	memcpy(&function->rows[2], strings, sizeof(strings));
}

static void make_code_chain(union event *e)
{
	struct code_chain_event *chain = (struct code_chain_event *)e;

	make(e, EVENT_CODE_CHAIN, sizeof(*chain) + 2 * sizeof(chain->calls[0]));
	chain->kind = FRAME_NOTE_V8;
	chain->state = CODE_STATE_CONFIRMED;
	chain->call_count = 2;
}

static void make_code_runtime(union event *e)
{
	struct code_runtime_event *runtime = (struct code_runtime_event *)e;

	make(e, EVENT_CODE_RUNTIME, sizeof(*runtime));
	runtime->kind = FRAME_NOTE_PYTHON;
	runtime->state = CODE_RUNTIME_FREE_THREADED;
}

/* Each part is as large as it may be. */
static void make_code_copy(union event *e)
{
	struct code_copy_event *copy = (struct code_copy_event *)e;

	make(e, EVENT_CODE_COPY, sizeof(*copy) + 40);
	copy->head_size = CODE_COPY_HEAD;
	copy->name_size = CODE_COPY_NAME;
	copy->file_size = CODE_COPY_FILE;
	copy->lines_size = 40;
}

static void make_symbol(union event *e)
{
	const struct symbol_frame frames[] = {
		{.function = "inner", .file = "a.c", .function_address = 16, .line = 3},
		{.function = "outer", .definition_file = "b.c", .function_address = ~0ULL},
	};

	symbol_event__encode(
		e, 42, 0x1000,
		&(struct symbol_result){.elf_address = 0x2000, .frames = frames, .frame_count = 2});
}

static void make_code_text(union event *e)
{
	struct code_text_event *text = (struct code_text_event *)e;

	make(e, EVENT_CODE_TEXT, sizeof(*text) + 16);
	text->size = 20;
	text->offset = 4;
	text->count = 16;
}

static void make_code_lines(union event *e)
{
	const struct symbol_frame frames[] = {{.function = "f", .file = "a.c"}, {.function = "g"}};
	struct code_lines_event *lines = (struct code_lines_event *)e;
	struct symbol_event *places = (void *)&lines->rows[2];

	make(e, EVENT_CODE_LINES, sizeof(*lines));
	lines->count = 2;
	lines->rows[0] = (struct code_line_row){.offset = 0, .line = 1};
	lines->rows[1] = (struct code_line_row){.offset = 4, .line = 2, .place = 1};
	symbol_event__encode(places, 42, 0x1000,
			     &(struct symbol_result){.frames = frames, .frame_count = 2});
	e->header.size = (char *)places + places->header.size - (char *)e;
}

static void make_source(union event *e)
{
	struct source_event *source = (struct source_event *)e;

	make(e, EVENT_SOURCE, sizeof(*source) + 16);
	source->size = 8;
	source->count = 8;
	source->path_size = 4;
	memcpy(source->data, "a.c\0int a;\n", 12);
}

/* Those with a callback. X(TYPE, callback, struct, what makes a sound one; NULL: it is as large as its struct) */
#define EVENTS(X)                                                                                  \
	X(SAMPLE, sample, sample_event, make_sample)                                               \
	X(VISIT, visit, visit_event, make_visit)                                                   \
	X(VISIT_BOOKS, visit_books, visit_books_event, make_visit_books)                           \
	X(CPU_TIMES, cpu_times, cpu_times_event, make_cpu_times)                                   \
	X(THREAD_CPU, thread_cpu, thread_cpu_event, NULL)                                          \
	X(MMAP, mmap, mmap_event, make_mmap)                                                       \
	X(COMM, comm, comm_event, NULL)                                                            \
	X(FORK, fork, task_event, NULL)                                                            \
	X(EXIT, exit, task_event, NULL)                                                            \
	X(LOST, lost, lost_event, NULL)                                                            \
	X(PROCESS, process, process_event, make_process)                                           \
	X(THREAD, thread, thread_event, NULL)                                                      \
	X(MAPS_READ, maps_read, maps_read_event, NULL)                                             \
	X(MEMORY, memory, memory_event, NULL)                                                      \
	X(CGROUP, cgroup, cgroup_event, make_cgroup)                                               \
	X(OUTSIDE, outside, outside_event, NULL)                                                   \
	X(FACTS, facts, facts_event, make_facts)                                                   \
	X(CLOCK_ANCHOR, clock_anchor, clock_anchor_event, NULL)                                    \
	X(BOOKS, books, books_event, NULL)                                                         \
	X(KALLSYMS, kallsyms, kallsyms_event, make_kallsyms)                                       \
	X(END, end, event_header, NULL)                                                            \
	X(JIT_FILE, jit_file, jit_file_event, make_jit_file)                                       \
	X(JIT_BYTES, jit_bytes, jit_bytes_event, make_jit_bytes)                                   \
	X(CODE_FUNCTION, code_function, code_function_event, make_code_function)                   \
	X(CODE_CHAIN, code_chain, code_chain_event, make_code_chain)                               \
	X(CODE_RUNTIME, code_runtime, code_runtime_event, make_code_runtime)                       \
	X(SYMBOL_DSO, symbol_dso, symbol_dso_event, NULL)                                          \
	X(SOURCE_ROOT, source_root, source_root_event, NULL)                                       \
	X(SYMBOL, symbol, symbol_event, make_symbol)                                               \
	X(CODE_TEXT, code_text, code_text_event, make_code_text)                                   \
	X(CODE_LINES, code_lines, code_lines_event, make_code_lines)                               \
	X(SOURCE, source, source_event, make_source)                                               \
	X(SYMBOLS_END, symbols_end, event_header, NULL)

#define SOUND(type, name, kind, make) {EVENT_##type, sizeof(struct kind), make},
static const struct {
	enum event_type type;
	size_t size;
	void (*make)(union event *e);
} types[] = {EVENTS(SOUND){EVENT_META, 0, make_meta},
	     {EVENT_JIT_CLOCK, 0, make_jit_clock},
	     {EVENT_CODE_COPY, 0, make_code_copy}};

/* Events of the other types are checked, but event_decode() calls nothing for them. */
static bool has_callback(enum event_type type)
{
	return type != EVENT_JIT_CLOCK && type != EVENT_CODE_COPY;
}

static void make_sound(union event *e, enum event_type type)
{
	size_t i = 0;

	while (types[i].type != type)
		assert_true(++i < COUNT(types));
	if (types[i].make)
		types[i].make(e);
	else
		make(e, type, types[i].size);
	if (type == EVENT_BOOKS)
		e->books.lines = BOOK_COUNT;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

struct calls {
	unsigned int of_type[64];
	int answer;
	char key[16], value[16];
};

#define CALLBACK(event_type, name, kind, make)                                                     \
	static int received_##name(void *context, const struct kind *event)                        \
	{                                                                                          \
		struct calls *calls = context;                                                     \
                                                                                                   \
		assert_non_null(event);                                                            \
		calls->of_type[EVENT_##event_type]++;                                              \
		return calls->answer;                                                              \
	}

EVENTS(CALLBACK)

static int received_meta(void *context, const char *key, const char *value)
{
	struct calls *calls = context;

	calls->of_type[EVENT_META]++;
	snprintf(calls->key, sizeof(calls->key), "%s", key);
	snprintf(calls->value, sizeof(calls->value), "%s", value);
	return calls->answer;
}

#define MEMBER(event_type, name, kind, make) .name = received_##name,
static struct event_handler handler_for(struct calls *calls)
{
	return (struct event_handler){.context = calls, .meta = received_meta, EVENTS(MEMBER)};
}

TEST(each_type_reaches_its_callback)
{
	union event *e = malloc(sizeof(*e));
	struct event_handler nobody = {};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct calls calls = {};
		struct event_handler handler = handler_for(&calls);

		make_sound(e, types[i].type);
		assert_int_equal(event_decode(&e->header, &handler), 0);
		for (unsigned int type = 0; type < COUNT(calls.of_type); type++)
			assert_int_equal(calls.of_type[type],
					 type == types[i].type && has_callback(type));
		calls.answer = -ECANCELED;
		assert_int_equal(event_decode(&e->header, &handler),
				 has_callback(types[i].type) ? -ECANCELED : 0);
		assert_int_equal(event_decode(&e->header, &nobody), 0);
		if (types[i].type == EVENT_META) {
			assert_string_equal(calls.key, "key");
			assert_string_equal(calls.value, "value");
		}
	}
	free(e);
}

TEST(the_stack_of_a_visit_is_a_sample_unless_it_is_an_account)
{
	union event *e = malloc(sizeof(*e));

	make_visit(e);
	assert_ptr_equal(event_stack(&e->header), &e->visit.stack);
	e->visit.account.found = VISIT_ACCOUNT;
	assert_null(event_stack(&e->header));
	free(e);
}

TEST(unknown_types_are_skipped)
{
	const int unknown[] = {EVENT_NONE, 3, 43, 999};
	struct calls calls = {};
	struct event_handler handler = handler_for(&calls);
	union event *e = malloc(sizeof(*e));

	for (size_t i = 0; i < COUNT(unknown); i++) {
		make(e, unknown[i], 64);
		assert_int_equal(event_decode(&e->header, &handler), 0);
	}
	for (unsigned int type = 0; type < COUNT(calls.of_type); type++)
		assert_int_equal(calls.of_type[type], 0);
	free(e);
}

/* ---- broken events --------------------------------------------------------------------------- */

/* An event whose memory ends within it is refused, with its own size and with the shorter one. */
TEST(cut_events_are_refused_without_reading_beyond)
{
	union event *e = malloc(sizeof(*e));

	for (size_t i = 0; i < COUNT(types); i++) {
		uint32_t whole;

		make_sound(e, types[i].type);
		whole = e->header.size;
		for (uint32_t available = 0; available < whole; available++) {
			/* for ASan to guard */
			_cleanup_free_ char *cut = malloc(available ? available : 1);
			struct event_header *header = (void *)cut;

			memcpy(cut, e, available);
			assert_int_equal(event_check(header, available), -EBADMSG);
			if (available >= sizeof(*header)) {
				header->size = available;
				assert_int_equal(event_check(header, available), -EBADMSG);
			}
		}
		assert_int_equal(event_check(&e->header, whole), 0);
	}
	free(e);
}

TEST(changed_bytes_cause_no_reads_beyond_the_event)
{
	static const unsigned char patterns[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	union event *e = malloc(sizeof(*e));

	for (size_t i = 0; i < COUNT(types); i++) {
		make_sound(e, types[i].type);
		uint32_t whole = e->header.size;
		_cleanup_free_ char *copy = malloc(whole);

		for (uint32_t at = 0; at < whole; at++) {
			for (size_t p = 0; p < COUNT(patterns); p++) {
				memcpy(copy, e, whole);
				copy[at] = patterns[p];
				(void)event_check((struct event_header *)copy, whole);
			}
		}
	}
	free(e);
}

#define REFUSED(make_it, change)                                                                   \
	do {                                                                                       \
		make_it;                                                                           \
		assert_int_equal(event_check(&e->header, sizeof(*e)), 0);                          \
		change;                                                                            \
		assert_int_equal(event_check(&e->header, sizeof(*e)), -EBADMSG);                   \
	} while (0)

TEST(each_rule_refuses_the_event_that_breaks_it)
{
	union event *e = malloc(sizeof(*e));
	struct visit_books_event *books = (struct visit_books_event *)e;
	struct code_copy_event *copy = (struct code_copy_event *)e;

	REFUSED(make_sample(e), e->header.size += 4);
	REFUSED(make_sample(e), e->header.size = 8);
	REFUSED(make_sample(e), e->header.size = EVENT_SIZE_MAX + 8);
	REFUSED(make_sample(e), e->sample.user_frames = 4);
	REFUSED(make_sample(e), e->sample.kernel_frames = 3);
	REFUSED(make_sample(e), e->sample.kernel_frames = 65535);
	REFUSED(make_sample(e), (e->header.size = sizeof(*e), e->sample.kernel_frames = 128));
	REFUSED(make_sample(e), (e->header.size = sizeof(*e), e->sample.user_frames = 1025));
	REFUSED(make_sample(e), e->sample.user_end = STACK_END_COUNT);
	REFUSED(make_sample(e), e->sample.from_user = 2);
	REFUSED(make_sample(e), e->sample.cpu = EVENT_CPU_LIMIT);
	REFUSED(make_sample(e), e->sample.frames[3] = 0x401100);
	REFUSED(make_sample(e), e->sample.frames[2] = frame_pack(FRAME_KIND_COUNT, 0x401000));
	REFUSED(make_sample(e), e->sample.frames[4] = 0xffffffff81000010);
	REFUSED(make_sample(e), e->header.flags |= EVENT_STACK_COPY);
	REFUSED(make_copy(e), e->header.size -= 8);
	REFUSED(make_copy(e), e->sample.user_frames++);
	REFUSED(make_copy(e), copy_of(e)->size = 72);
	REFUSED(make_copy(e), copy_of(e)->size = UINT32_MAX);
	REFUSED(make_mmap(e), memset(e->mmap.path, 'x', 16));
	REFUSED(make_mmap(e), e->mmap.build_id_size = BUILD_ID_SIZE + 1);
	REFUSED(make_mmap(e), e->mmap.file_state = FILE_STATE_COUNT);
	REFUSED(make_mmap(e), e->header.flags = EVENT_BUILD_ID);
	REFUSED(make_mmap(e), (e->mmap.start = 4096, e->mmap.length = ~0ULL));
	REFUSED(make_mmap(e), (e->header.size = 8192, memset(e->mmap.path, 'x', EVENT_PATH_MAX)));
	REFUSED(make_sound(e, EVENT_COMM), memset(e->comm.comm, 'x', EVENT_COMM_SIZE));
	REFUSED(make_sound(e, EVENT_THREAD), memset(e->thread.comm, 'x', EVENT_COMM_SIZE));
	REFUSED(make_sound(e, EVENT_LOST), e->lost.source = LOST_SOURCE_COUNT);
	REFUSED(make_sound(e, EVENT_LOST), e->lost.cpu = EVENT_CPU_LIMIT);
	REFUSED(make_process(e), e->process.is_target = 2);
	REFUSED(make_process(e), e->process.is_kernel = 2);
	REFUSED(make_process(e), memset(e->process.name, 'x', 8));
	REFUSED(make_sound(e, EVENT_BOOKS), e->books.cpu = EVENT_CPU_LIMIT);
	REFUSED(make_sound(e, EVENT_BOOKS), e->books.lines = BOOK_COUNT - 1);
	REFUSED(make_sound(e, EVENT_BOOKS), e->books.lines = BOOK_COUNT + 1);
	REFUSED(make_cgroup(e), e->cgroup.path[0] = '\0');
	REFUSED(make_cgroup(e), memset(e->cgroup.path, 'x', 16));
	REFUSED(make_cgroup(e), e->header.size = sizeof(e->cgroup));
	REFUSED(make_sound(e, EVENT_MEMORY), e->header.size -= 8);
	REFUSED(make_facts(e), e->facts.state = FACTS_STATE_NONE);
	REFUSED(make_facts(e), e->facts.state = FACTS_STATE_COUNT);
	REFUSED(make_facts(e), e->facts.count = 1);
	REFUSED(make_facts(e), e->facts.count = 3);
	REFUSED(make_facts(e), e->facts.count = UINT32_MAX);
	REFUSED(make_facts(e), e->facts.count = PROCESS_FACTS_MAX + 1);
	REFUSED(make_facts(e), e->facts.size--);
	REFUSED(make_facts(e), e->facts.size = UINT32_MAX);
	REFUSED(make_facts(e), e->facts.size = e->header.size);
	REFUSED(make_facts(e), e->header.size -= 8);
	REFUSED(make_facts(e), e->facts.since = 43);
	REFUSED(make_facts(e), e->facts.text[0] = '\0'); /* a key that is empty */
	REFUSED(make_facts(e), e->facts.text[e->facts.size - 1] = 'x');
	REFUSED(make_facts(e), (e->header.size = 16384, e->facts.size = PROCESS_FACTS_SIZE + 1,
				memset(e->facts.text, 'x', 16000),
				e->facts.text[1] = e->facts.text[3] = e->facts.text[5] =
					e->facts.text[PROCESS_FACTS_SIZE] = '\0'));
	REFUSED(make_visit(e), e->visit.stack.header.size -= 8);
	REFUSED(make_visit(e), e->visit.stack.header.size += 8);
	REFUSED(make_visit(e), e->visit.stack.header.type = EVENT_VISIT);
	REFUSED(make_visit(e), e->visit.stack.header.flags = EVENT_STACK_COPY);
	REFUSED(make_visit(e), e->visit.stack.user_frames = 60);
	REFUSED(make_visit(e), e->visit.stack.user_end = STACK_END_COUNT);
	REFUSED(make_visit(e), e->visit.stack.notes = FRAME_NOTES_MAX + 1);
	REFUSED(make_visit(e), e->visit.account.seen = 43);
	REFUSED(make_visit(e), e->visit.account.unchanged = 42);
	REFUSED(make_visit(e), e->visit.account.call = VISIT_CALL_UNKNOWN - 1);
	REFUSED(make_visit(e), e->visit.account.found = VISIT_ALL + 1);
	REFUSED(make_visit(e), e->header.size = sizeof(struct visit_event) - 8);
	REFUSED(make_visit_books(e), books->lines = VISIT_LINE_COUNT + 1);
	REFUSED(make_visit_books(e), books->hz = 0);
	REFUSED(make_jit_file(e), e->jit_file.file = 0);
	REFUSED(make_jit_file(e), e->jit_file.state = JIT_FILE_STATE_COUNT);
	REFUSED(make_jit_bytes(e), e->jit_bytes.size = 17);
	REFUSED(make_jit_bytes(e), e->jit_bytes.after = 21);
	REFUSED(make_code_copy(e), copy->head_size = CODE_COPY_HEAD + 1);
	REFUSED(make_code_copy(e), copy->name_size = CODE_COPY_NAME + 1);
	REFUSED(make_code_copy(e), copy->file_size = CODE_COPY_FILE + 1);
	REFUSED(make_code_copy(e), copy->lines_size = 41);
	REFUSED(make_code_copy(e), e->header.size = sizeof(*copy) - 8);
	REFUSED(make_meta(e), e->meta.text[0] = '\0');
	REFUSED(make_meta(e), memset(e->meta.text, 'x', 16));
	REFUSED(make_meta(e), memset(e->meta.text + 4, 'x', 12));
	REFUSED(make_kallsyms(e), e->kallsyms.text_size = 25);
	REFUSED(make_symbol(e), e->symbol.frames = 3);
	REFUSED(make_symbol(e), e->symbol.frames = SYMBOL_CHAIN_MAX + 1);
	REFUSED(make_symbol(e), ((struct symbol_event_frame *)e->symbol.payload)->name_size = 7);
	REFUSED(make_symbol(e),
		((struct symbol_event_frame *)e->symbol.payload)->name_size = 65535);
	REFUSED(make_code_text(e), e->text.size = 0);
	REFUSED(make_code_text(e), e->text.size = CODE_TEXT_MAX + 1);
	REFUSED(make_code_text(e), e->text.offset = 5);
	REFUSED(make_code_text(e), e->text.offset = 20);
	REFUSED(make_code_text(e), e->text.count = 17);
	REFUSED(make_code_text(e), e->header.size -= 8);
	REFUSED(make_code_lines(e), e->lines.count = 3);
	REFUSED(make_code_lines(e), e->lines.count = UINT32_MAX);
	REFUSED(make_code_lines(e), e->lines.rows[1].place = 2);
	REFUSED(make_code_lines(e), e->lines.rows[1].offset = 0);
	REFUSED(make_code_lines(e), e->header.size += 8);
	REFUSED(make_code_lines(e), e->header.size -= 8);
	REFUSED(make_code_lines(e), ((struct event_header *)&e->lines.rows[2])->type = EVENT_END);
	REFUSED(make_code_lines(e), ((struct symbol_event *)&e->lines.rows[2])->frames = 3);
	REFUSED(make_source(e), e->source.size = 0);
	REFUSED(make_source(e), e->source.size = SOURCE_TEXT_MAX + 1);
	REFUSED(make_source(e), e->source.offset = 8);
	REFUSED(make_source(e), e->source.count = 9);
	REFUSED(make_source(e), e->source.path_size = 0);
	REFUSED(make_source(e), e->source.path_size = 1);
	REFUSED(make_source(e), e->source.path_size = 5);
	REFUSED(make_source(e), e->source.path_size = 65535);
	REFUSED(make_source(e), e->source.data[1] = '\0');
	REFUSED(make_source(e), e->source.root = SOURCE_ROOT_NONE);
	REFUSED(make_sound(e, EVENT_SOURCE_ROOT), e->source_root.root = SOURCE_ROOT_SCRIPTS);
	REFUSED(make_sound(e, EVENT_SOURCE_ROOT), e->source_root.root = SOURCE_ROOT_ALL);
	REFUSED(make_sound(e, EVENT_SOURCE_ROOT), e->source_root.root = 256);
	make_sound(e, EVENT_LOST);
	e->lost.cpu = ~0u;
	assert_int_equal(event_check(&e->header, sizeof(*e)), 0);
	free(e);
}
