/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-made event sequences through world and recorder, and what the profile says then. To be included
 * after cmocka.h.
 *
 * Every test is a story in events, one call each, with times in ns around 1 s; ev.now is the
 * time of the next event. Addresses: programs are mapped at 0x10000, libraries at 0x20000.
 */
#ifndef TESTS_UNIT_EVENT_STORY_H
#define TESTS_UNIT_EVENT_STORY_H

#include <math.h>

#include "story_text.h"
#include "world/profile_symbols.h"
#include "world/recorder.h"
#include "world/recording_facts.h"

#define S	    1000000000ull
#define MS	    1000000ull

#define WINDOWS_MAX 64

static struct {
	struct world *world;
	struct recording_facts *facts;
	/* of the open window, and of those that are closed */
	struct profile_builder *builder;
	struct recorder *recorder;
	struct event_handler h;
	struct profile_symbols symbols;
	struct event_handler symbol_handler;
	struct profile_builder *closed[WINDOWS_MAX];
	const struct profile *profiles[WINDOWS_MAX];
	size_t windows;
	struct event_source_requests requests;
	uint64_t now;
	uint16_t sample_flags;	/* of the next samples */
	uint64_t sample_period; /* the same; 0: of a clock */
	uint32_t reread[16];
	size_t rereads;
	const struct profile *p;
} ev;

static inline void note_reread(void *context, __u32 pid)
{
	if (ev.rereads < 16)
		ev.reread[ev.rereads] = pid;
	ev.rereads++;
}

static inline void open_window(uint64_t start)
{
	ev.builder = profile_builder__new();
	ev.recorder = recorder__new(ev.world, ev.facts, ev.builder, start);
	ev.h = recorder__handler(ev.recorder);
	profile_symbols__init(&ev.symbols, ev.builder);
	ev.symbol_handler = profile_symbols__handler(&ev.symbols);
}

static inline void set_up(void)
{
	memset(&ev, 0, sizeof(ev));
	ev.requests.reread_process = note_reread;
	ev.world = world__new(&ev.requests);
	ev.facts = recording_facts__new();
	open_window(0);
	ev.now = S;
}

static inline void tear_down(void)
{
	recorder__free(ev.recorder);
	profile_symbols__fini(&ev.symbols);
	profile_builder__free(ev.builder);
	for (size_t i = 0; i < ev.windows; i++)
		profile_builder__free(ev.closed[i]);
	recording_facts__free(ev.facts);
	world__free(ev.world);
}

/* `end` 0: the last window. */
static inline const struct profile *close_window(uint64_t end)
{
	char why[256] = "";

	assert_int_equal(recorder__close(ev.recorder, end), 0);
	if (profile_builder__finish(ev.builder, &ev.p, why, sizeof(why)))
		fail_msg("%s", why);
	return ev.p;
}

/* The window ends now, and the next one begins. */
static inline void next_window(void)
{
	assert_true(ev.windows < WINDOWS_MAX);
	ev.profiles[ev.windows] = close_window(ev.now);
	ev.closed[ev.windows++] = ev.builder;
	recorder__free(ev.recorder);
	profile_symbols__fini(&ev.symbols);
	open_window(ev.now);
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline struct event_header header(uint16_t flags)
{
	return (struct event_header){.flags = flags, .time = ev.now};
}

static inline void start_sampling(void)
{
	char value[32];

	assert_int_equal(ev.h.meta(ev.h.context, "period_ns", "1000000"), 0);
	snprintf(value, sizeof(value), "%" PRIu64, ev.now);
	assert_int_equal(ev.h.meta(ev.h.context, "sampling_start", value), 0);
}

static inline void report_process(uint32_t pid, uint64_t start, bool target, bool kernel,
				  const char *name)
{
	struct process_event *e = calloc(1, sizeof(*e) + 64);

	e->header = header(EVENT_FROM_PROC);
	e->pid = pid;
	e->ppid = 1;
	e->start_time = start;
	e->is_target = target;
	e->is_kernel = kernel;
	strcpy(e->name, name);
	assert_int_equal(ev.h.process(ev.h.context, e), 0);
	free(e);
}

static inline void process(uint32_t pid, uint64_t start, bool target, const char *name)
{
	report_process(pid, start, target, false, name);
}

static inline void thread(uint32_t pid, uint32_t tid, uint64_t start, uint64_t cpu,
			  const char *comm)
{
	struct thread_event e = {.header = header(EVENT_FROM_PROC),
				 .pid = pid,
				 .tid = tid,
				 .start_time = start,
				 .cpu_time = cpu};

	strcpy(e.comm, comm);
	assert_int_equal(ev.h.thread(ev.h.context, &e), 0);
}

static inline void fork_(uint32_t ppid, uint32_t ptid, uint32_t pid, uint32_t tid)
{
	struct task_event e = {
		.header = header(0), .pid = pid, .ppid = ppid, .tid = tid, .ptid = ptid};

	assert_int_equal(ev.h.fork(ev.h.context, &e), 0);
}

static inline void exit_(uint32_t pid, uint32_t tid)
{
	struct task_event e = {.header = header(0), .pid = pid, .tid = tid};

	assert_int_equal(ev.h.exit(ev.h.context, &e), 0);
}

static inline void comm(uint32_t pid, uint32_t tid, const char *name, uint16_t flags)
{
	struct comm_event e = {.header = header(flags), .pid = pid, .tid = tid};

	strcpy(e.comm, name);
	assert_int_equal(ev.h.comm(ev.h.context, &e), 0);
}

static inline void map(uint32_t pid, uint64_t start, uint64_t length, uint64_t offset,
		       const char *path, uint16_t flags)
{
	struct mmap_event *e = calloc(1, sizeof(*e) + 256);

	e->header = header(flags);
	e->pid = e->tid = pid;
	e->start = start;
	e->length = length;
	e->page_offset = offset;
	e->protection = PROT_READ | PROT_EXEC;
	e->file_state = FILE_STATE_RIGHT;
	strcpy(e->path, path);
	assert_int_equal(ev.h.mmap(ev.h.context, e), 0);
	free(e);
}

static inline void maps_read(uint32_t pid)
{
	struct maps_read_event e = {.header = header(EVENT_FROM_PROC), .pid = pid};

	assert_int_equal(ev.h.maps_read(ev.h.context, &e), 0);
}

static inline void memory(uint32_t pid, uint64_t bytes, uint16_t flags)
{
	struct memory_event e = {
		.header = header(EVENT_FROM_PROC | flags), .pid = pid, .resident = bytes};

	assert_int_equal(ev.h.memory(ev.h.context, &e), 0);
}

static inline void cgroup(uint32_t pid, const char *path)
{
	struct cgroup_event *e = calloc(1, sizeof(*e) + 64);

	e->header = header(EVENT_FROM_PROC);
	e->pid = pid;
	strcpy(e->path, path);
	assert_int_equal(ev.h.cgroup(ev.h.context, e), 0);
	free(e);
}

/* `text`: "key\0value\0", `size` bytes. */
static inline void facts(uint32_t pid, uint64_t since, enum facts_state state, const char *text,
			 size_t size)
{
	struct facts_event *e = calloc(1, sizeof(*e) + size);

	e->header = header(EVENT_FROM_PROC);
	e->pid = pid;
	e->since = since;
	e->state = state;
	e->size = size;
	for (size_t i = 0; i < size; i++)
		e->count += !text[i];
	e->count /= 2;
	memcpy(e->text, text, size);
	assert_int_equal(ev.h.facts(ev.h.context, e), 0);
	free(e);
}

static inline void thread_cpu(uint32_t pid, uint32_t tid, uint64_t cpu, uint16_t flags)
{
	struct thread_cpu_event e = {
		.header = header(flags), .tgid = pid, .tid = tid, .cpu_time = cpu};

	assert_int_equal(ev.h.thread_cpu(ev.h.context, &e), 0);
}

/* Frames leaf first; kernel ones are full addresses, user ones made by frame_pack(); 0 ends. */
static inline void sample(uint32_t pid, uint32_t tid, uint64_t cpu, ...)
{
	struct sample_event *e = calloc(1, sizeof(*e) + 32 * sizeof(e->frames[0]));
	uint64_t frame;
	size_t n = 0;
	va_list frames;

	e->header = header(ev.sample_flags);
	e->tgid = pid;
	e->tid = tid;
	e->cpu_time = cpu;
	e->period = ev.sample_period;
	va_start(frames, cpu);
	while ((frame = va_arg(frames, uint64_t))) {
		e->frames[n++] = frame;
		if (frame_kind(frame) == FRAME_KERNEL)
			e->kernel_frames++;
		else
			e->user_frames++;
	}
	va_end(frames);
	e->from_user = !e->kernel_frames;
	assert_int_equal(ev.h.sample(ev.h.context, e), 0);
	free(e);
}

#define IP(address)  frame_pack(FRAME_IP, (address))
#define RET(address) frame_pack(FRAME_POINTER, (address))
#define END	     ((uint64_t)0)
/* a sample at a place in the program that is mapped at 0x10000 */
#define HERE IP(0x10010), END

static inline void stop(void)
{
	struct event_header e = header(0);

	assert_int_equal(ev.h.end(ev.h.context, &e), 0);
}

static inline const struct profile *finish(void)
{
	return close_window(0);
}

/* Nanoseconds of "1.5" ms. */
static inline uint64_t ms_of(const char *text)
{
	return (uint64_t)llround(strtod(text, NULL) * MS);
}

/* The words of an event; those that it does not have are empty. */
struct story_words {
	const char *word[16];
	int count;
};

static inline uint32_t story_number(const struct story_words *w, int i)
{
	return (uint32_t)strtoul(w->word[i], NULL, 10);
}

static inline uint64_t story_hex(const char *text)
{
	return strtoull(text, NULL, 16);
}

static inline bool story_has(const struct story_words *w, const char *word)
{
	for (int i = 0; i < w->count; i++)
		if (!strcmp(w->word[i], word))
			return true;
	return false;
}

static inline uint16_t story_flags(const struct story_words *w)
{
	return (uint16_t)((story_has(w, "left") ? EVENT_LEFT : 0) |
			  (story_has(w, "from-proc") ? EVENT_FROM_PROC : 0) |
			  (story_has(w, "recorder") ? EVENT_RECORDER : 0) |
			  (story_has(w, "baseline") ? EVENT_BASELINE : 0) |
			  (story_has(w, "exited") ? EVENT_EXITED : 0) |
			  (story_has(w, "softirq") ? EVENT_IN_SOFTIRQ : 0) |
			  (story_has(w, "hardirq") ? EVENT_IN_HARDIRQ : 0) |
			  (story_has(w, "guest") ? EVENT_IN_GUEST : 0));
}

/* k100: at this place of the kernel; the first of others is an IP, callers are as `how`, or return addresses. */
static inline uint64_t story_frame(const char *word, bool first)
{
	static const struct {
		char letter;
		uint64_t kind;
	} how[] = {{'i', FRAME_IP},
		   {'s', FRAME_AFTER_SIGNAL},
		   {'t', FRAME_TABLE},
		   {'p', FRAME_LEAF_PEEK}};

	if (*word == 'k')
		return 0xffffffff81000000 + story_hex(word + 1);
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (*word == how[i].letter)
			return frame_pack(how[i].kind, story_hex(word + 1));
	return first ? IP(story_hex(word)) : RET(story_hex(word));
}

static inline void play_sample(const struct story_words *w)
{
	uint64_t f[8] = {};
	bool first = true;

	if (w->count == 4)
		f[0] = IP(0x10010);
	for (int i = 4; i < w->count && strcmp(w->word[i], "none"); i++) {
		f[i - 4] = story_frame(w->word[i], first);
		first &= *w->word[i] == 'k';
	}
	sample(story_number(w, 1), story_number(w, 2), ms_of(w->word[3]), f[0], f[1], f[2], f[3],
	       f[4], f[5], f[6], END);
}

static inline void play_facts(const struct story_words *w)
{
	static const char *const states[] = {[FACTS_STATE_FIRST] = "first",
					     [FACTS_STATE_WHOLE] = "whole",
					     [FACTS_STATE_REFUSED] = "refused"};
	enum facts_state state = FACTS_STATE_NONE;
	char text[256];
	size_t size = 0;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i] && !strcmp(states[i], w->word[3]))
			state = i;
	for (int i = 4; i < w->count; i++) {
		size_t length = strlen(w->word[i]);

		memcpy(text + size, w->word[i], length + 1);
		*strchr(text + size, '=') = '\0';
		size += length + 1;
	}
	facts(story_number(w, 1), ev.now - story_number(w, 2), state, text, size);
}

/* "~" in a path is a blank, and "-" an empty one. */
static inline void play_map(const struct story_words *w)
{
	uint64_t size = 0x1000, offset = 0;
	char path[128];

	snprintf(path, sizeof(path), "%s", strcmp(w->word[3], "-") ? w->word[3] : "");
	for (char *at = path; (at = strchr(at, '~'));)
		*at = ' ';
	for (int i = 4; i < w->count; i++) {
		if (!strncmp(w->word[i], "size=", 5))
			size = story_hex(w->word[i] + 5);
		else if (!strncmp(w->word[i], "offset=", 7))
			offset = story_hex(w->word[i] + 7);
	}
	map(story_number(w, 1), story_hex(w->word[2]), size, offset, path, story_flags(w));
}

static inline bool play_life(const char *verb, const struct story_words *w)
{
	const uint32_t n[] = {story_number(w, 1), story_number(w, 2), story_number(w, 3),
			      story_number(w, 4)};

	if (!strcmp(verb, "process") && w->count >= 4)
		report_process(n[0], S + ms_of(w->word[2]), !story_has(w, "unrequested"),
			       story_has(w, "kernel"), w->word[3]);
	else if (!strcmp(verb, "thread") && w->count == 6)
		thread(n[0], n[1], S + ms_of(w->word[3]), ms_of(w->word[4]), w->word[5]);
	else if (!strcmp(verb, "fork") && w->count == 5)
		fork_(n[0], n[1], n[2], n[3]);
	else if (!strcmp(verb, "exit") && w->count == 3)
		exit_(n[0], n[1]);
	else if (!strcmp(verb, "comm") && w->count >= 4)
		comm(n[0], n[1], w->word[3], story_flags(w));
	else if (!strcmp(verb, "exec") && w->count == 4)
		comm(n[0], n[1], w->word[3], EVENT_COMM_EXEC);
	else if (!strcmp(verb, "map") && w->count >= 4)
		play_map(w);
	else if (!strcmp(verb, "read") && w->count == 2)
		maps_read(n[0]);
	else if (!strcmp(verb, "cgroup") && w->count == 3)
		cgroup(n[0], w->word[2]);
	else
		return false;
	return true;
}

static inline void play_words(const struct story_words *w)
{
	const char *verb = w->word[0];

	if (*verb == '+')
		ev.now += ms_of(verb + 1);
	else if (!strcmp(verb, "sample") && w->count >= 4)
		play_sample(w);
	else if (!strcmp(verb, "cpu") && w->count >= 4)
		thread_cpu(story_number(w, 1), story_number(w, 2), ms_of(w->word[3]),
			   story_flags(w));
	else if (!strcmp(verb, "memory") && w->count >= 3)
		memory(story_number(w, 1), story_number(w, 2), story_flags(w));
	else if (!strcmp(verb, "facts") && w->count >= 4)
		play_facts(w);
	else if (!strcmp(verb, "meta") && w->count == 3)
		assert_int_equal(ev.h.meta(ev.h.context, w->word[1], w->word[2]), 0);
	else if (!strcmp(verb, "in"))
		ev.sample_flags = story_flags(w);
	else if (!strcmp(verb, "begin"))
		start_sampling();
	else if (!strcmp(verb, "window"))
		next_window();
	else if (!strcmp(verb, "stop"))
		stop();
	else if (*verb != '(' && !play_life(verb, w))
		fail_msg("no event: %s", verb);
}

/*
 * Events in their order, between commas or lines. Times and CPU times are in ms, addresses hexadecimal.
 *   +MS                              time passes
 *   process PID START NAME [unrequested] [kernel], thread PID TID START CPU NAME
 *   fork PPID PTID PID TID, exit PID TID, exec PID TID NAME, comm PID TID NAME [from-proc]
 *   map PID START PATH [size=] [offset=] [from-proc] [left], read PID      all mappings of it were read
 *   sample PID TID CPU [FRAME...]    see story_frame(); at a place of prog, or "none"
 *   cpu PID TID CPU [exited] [baseline], memory PID BYTES [recorder], cgroup PID PATH
 *   facts PID AGO STATE KEY=VALUE... read so many ns ago
 *   meta KEY VALUE, in [softirq] [hardirq] [guest] for the next samples, begin, window, stop, (a remark)
 */
static inline void play_with(void (*play_item)(const struct story_words *w), const char *story)
{
	char copy[2048], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", story);
	for (char *item, *at; (item = strtok_r(rest, ",\n", &rest));) {
		struct story_words w = {.word = {[0 ... 15] = ""}};

		for (; w.count < 16 && (at = strtok_r(item, " ", &item)); w.count++)
			w.word[w.count] = at;
		if (w.count)
			play_item(&w);
	}
}

static inline void play(const char *story)
{
	play_with(play_words, story);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The n-th life (from 0) of a tid. */
static inline const struct profile_thread *thread_of(uint32_t tid, unsigned int n)
{
	for (size_t i = 1; i < ev.p->thread_count; i++)
		if (ev.p->threads[i].tid == tid && n-- == 0)
			return &ev.p->threads[i];
	fail_msg("no thread %u", tid);
	return NULL;
}

static inline const struct profile_process *process_of(const struct profile_thread *t)
{
	return &ev.p->processes[t->process.v];
}

static inline const char *str(struct string_id id)
{
	return profile__string(ev.p, id);
}

/* "libx+0x10 prog+0x20": dso and address, root first */
static inline const char *stack_text(const struct profile_thread *t, size_t i)
{
	static char text[1024];
	char part[1024];

	assert_true(i < t->samples[SAMPLE_CPU].count);
	text[0] = '\0';
	for (struct stack_id s = t->samples[SAMPLE_CPU].stack[i]; s.v;
	     s = ev.p->stacks[s.v].parent) {
		const struct profile_location *l = &ev.p->locations[ev.p->stacks[s.v].location.v];

		snprintf(part, sizeof(part), "%s+0x%" PRIx64 "%s%s", str(ev.p->dsos[l->dso.v].name),
			 l->address, *text ? " " : "", text);
		strcpy(text, part);
	}
	return text;
}

static inline void expect_stack(const struct profile_thread *t, size_t i, const char *wanted)
{
	assert_string_equal(stack_text(t, i), wanted);
}

/* A process of one thread that was there before: pid 10, "prog", 5 s of CPU so far. */
static inline void prog(void)
{
	process(10, S / 2, true, "prog");
	thread(10, 10, S / 2, 5 * S, "prog");
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	start_sampling();
}

/* ---- any order at all ------------------------------------------------------------------------ */

static uint64_t seed;

static inline uint64_t random_below(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % limit;
}

/* One event about few tasks, with no regard to whether it makes sense. */
static inline void random_event(void)
{
	static const char *const names[] = {"a", "b", "c", ""};
	static const char *const paths[] = {"/bin/x", "/lib/y.so", "//anon", "[vdso]"};
	uint32_t pid = 1 + random_below(4), tid = 1 + random_below(8), other = 1 + random_below(4);
	const char *name = names[random_below(4)];
	uint64_t start = 0x10000 + random_below(4) * 0x800;

	switch (random_below(16)) {
	case 0:
		process(pid, random_below(3) * S / 2, random_below(2), name);
		break;
	case 1:
		thread(pid, random_below(2) ? pid : tid, random_below(3) * S / 2,
		       random_below(5 * MS), name);
		break;
	case 2:
		fork_(pid, tid, other, random_below(2) ? other : tid);
		break;
	case 3:
		exit_(pid, random_below(2) ? pid : tid);
		break;
	case 4:
		comm(pid, random_below(2) ? pid : tid, name, random_below(2) * EVENT_COMM_EXEC);
		break;
	case 5:
		map(pid, start, 0x800 * random_below(4), random_below(2) * 0x1000,
		    paths[random_below(4)], random_below(2) * EVENT_FROM_PROC);
		break;
	case 6:
		maps_read(pid);
		break;
	case 7:
		thread_cpu(pid, tid, random_below(5 * MS), random_below(2) * EVENT_EXITED);
		break;
	case 8:
		if (random_below(2))
			memory(9, 1 + random_below(1 << 20), EVENT_RECORDER);
		else
			memory(pid, 1 + random_below(1 << 20), 0);
		break;
	case 9:
		cgroup(pid, random_below(2) ? "/a" : "/b");
		break;
	default:
		sample(pid, random_below(2) ? pid : tid, random_below(5 * MS), IP(start + 0x10),
		       RET(0x10020 + random_below(4) * 0x800), RET(0x10000), END);
	}
}

/* A test of its own story. */
#define STORY(name) TEST_WITH(name, set_up, tear_down)

#endif
