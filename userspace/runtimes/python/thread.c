/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtimes/python/find.h"
#include "runtimes/target_memory.h"

#define INTERPRETERS_MAX 256u

/* ---- lists ----------------------------------------------------------------------------------- */

static int each_of_interpreter(const struct cpython *py, struct target_memory *m,
			       uint64_t interpreter, uint32_t *left, cpython_thread_fn visit,
			       void *context)
{
	const struct cpython_layout *l = &py->layout;
	struct cpython_thread t = {.interpreter = interpreter};
	int err = target_memory__word(m, &t.state, interpreter + l->interp_threads);

	while (!err && t.state && *left) {
		uint64_t next;

		--*left;
		err = target_memory__word(m, &t.fs, t.state + l->thread_id)
				?: target_memory__word(m, &next, t.state + l->thread_next)
				?: visit(context, &t);
		t.state = err ? 0 : next;
	}
	return err;
}

int cpython__each_thread(const struct cpython *py, struct target_memory *m, cpython_thread_fn visit,
			 void *context)
{
	uint32_t left = CPYTHON_THREADS_MAX, interpreters = INTERPRETERS_MAX;
	uint64_t interpreter;
	int err = target_memory__word(m, &interpreter, py->runtime + py->layout.interpreters);

	if (!err && !interpreter)
		return -ENOENT;
	while (!err && interpreter && interpreters--) {
		err = each_of_interpreter(py, m, interpreter, &left, visit, context)
			      ?: target_memory__word(m, &interpreter,
						     interpreter + py->layout.interp_next);
	}
	return err;
}

/* ---- the word -------------------------------------------------------------------------------- */

int cpython_thread_word__state(const struct cpython_thread_word *word, struct target_memory *m,
			       uint64_t fs, uint64_t *state)
{
	uint64_t p = fs;

	*state = 0;
	for (uint32_t i = 0; i < word->hops && i < CPYTHON_HOPS; i++) {
		int err = target_memory__word(m, &p, p + word->offset[i]);

		if (err)
			return err == -ENODATA ? 0 : err;
		if (!p)
			return 0;
	}
	*state = word->hops ? p : 0;
	return 0;
}

/* The results of a word for the threads that are listed. */
struct trial {
	const struct cpython *py;
	struct target_memory *m;
	const struct cpython_thread_word *word;
	uint32_t threads, glibc, good, bad;
};

#define TRIED_MAX 32u

/* Words 1 and 3 of glibc's block are its own address; musl's 4 is as well, or its 3 is not. */
static bool is_glibc(struct target_memory *m, uint64_t fs)
{
	uint64_t words[4];

	return !target_memory__read(m, words, sizeof(words), fs) && words[0] == fs &&
	       words[2] == fs && words[3] != fs;
}

static int try_thread(void *context, const struct cpython_thread *thread)
{
	struct trial *t = context;
	uint64_t state, fs;

	if (!thread->fs)
		return 0;
	t->threads++;
	if (!is_glibc(t->m, thread->fs))
		return t->threads >= TRIED_MAX;
	t->glibc++;
	if (t->word && !cpython_thread_word__state(t->word, t->m, thread->fs, &state) && state) {
		if (!target_memory__word(t->m, &fs, state + t->py->layout.thread_id) &&
		    fs == thread->fs)
			t->good++;
		else
			t->bad++;
	}
	return t->threads >= TRIED_MAX;
}

static enum cpython_verdict try_word(const struct cpython *py, struct target_memory *m,
				     const struct cpython_thread_word *word)
{
	struct trial t = {.py = py, .m = m, .word = word};
	int err = cpython__each_thread(py, m, try_thread, &t);

	if (!t.threads)
		return err == -EDQUOT || err == -ESRCH || err == -EPERM ? CPYTHON_UNREADABLE
									: CPYTHON_NOT_STARTED;
	if (!t.glibc)
		return CPYTHON_OTHER_LIBC;
	return t.good > t.bad ? CPYTHON_OK : CPYTHON_THREADS_UNKNOWN;
}

/* ---- the key: up to 3.14 --------------------------------------------------------------------- */

/* glibc's struct pthread: {sequence, value} of the first keys, and pointers to blocks of others. */
#define KEYS_FIRST     0x310
#define KEY_BLOCKS     0x510
#define KEYS_PER_BLOCK 32u
#define KEY_SIZE       16u
#define KEY_VALUE      8u
#define KEYS_MAX       1024u

static enum cpython_verdict word_of_key(const struct cpython *py, struct target_memory *m,
					struct cpython_thread_word *word)
{
	uint32_t key[2];

	if (target_memory__read(m, key, sizeof(key), py->runtime + py->layout.tss_key))
		return CPYTHON_UNREADABLE;
	if (!key[0])
		return CPYTHON_NOT_STARTED;
	if (key[1] >= KEYS_MAX)
		return CPYTHON_THREADS_UNKNOWN;
	if (key[1] < KEYS_PER_BLOCK)
		*word = (struct cpython_thread_word){
			.hops = 1, .offset = {KEYS_FIRST + KEY_SIZE * key[1] + KEY_VALUE}};
	else
		*word = (struct cpython_thread_word){
			.hops = 2,
			.offset = {KEY_BLOCKS + 8 * (key[1] / KEYS_PER_BLOCK),
				   KEY_SIZE * (key[1] % KEYS_PER_BLOCK) + KEY_VALUE}};
	return CPYTHON_OK;
}

/* ---- thread-local storage: from 3.15 on ------------------------------------------------------ */

#define DTV_OF_THREAD 8 /* glibc's block has a pointer to the array of modules' storage here */
#define DTV_SIZE      16

/* Code that is parsed from its beginning: skip() passes expected bytes. */
struct code {
	const uint8_t *at, *end;
	uint64_t address; /* of `at`, in the process */
};

static bool skip(struct code *c, const char *bytes, size_t size)
{
	if ((size_t)(c->end - c->at) < size || memcmp(c->at, bytes, size) != 0)
		return false;
	c->at += size;
	c->address += size;
	return true;
}

#define SKIP(c, bytes) skip((c), (bytes), sizeof(bytes) - 1)

static bool take_i32(struct code *c, int32_t *value)
{
	if ((size_t)(c->end - c->at) < sizeof(*value))
		return false;
	memcpy(value, c->at, sizeof(*value));
	c->at += sizeof(*value);
	c->address += sizeof(*value);
	return true;
}

/* ModRM of mov DISP(%rax),%rax, and its displacement. */
static bool take_displacement(struct code *c, int32_t *value)
{
	*value = 0;
	if (SKIP(c, "\x80"))
		return take_i32(c, value);
	if (SKIP(c, "\x40")) {
		if (c->at == c->end)
			return false;
		*value = (int8_t)*c->at++;
		c->address++;
		return true;
	}
	return SKIP(c, "\x00");
}

/* {module, offset} of the GOT for __tls_get_addr(), and a load from what that returns. */
static bool by_call(struct code *c, struct target_memory *m, struct cpython_thread_word *word)
{
	uint64_t slot[2];
	int32_t offset, call, displacement;

	if (!take_i32(c, &offset))
		return false;
	if (target_memory__read(m, slot, sizeof(slot), c->address + offset) ||
	    slot[0] > INT32_MAX || slot[1] > INT32_MAX)
		return false;
	SKIP(c, "\x66\x66\x48");
	if (!SKIP(c, "\xe8") || !take_i32(c, &call))
		return false;
	while (SKIP(c, "\x5d") || SKIP(c, "\x48\x83\xc4\x08")) /* pop %rbp; add $8,%rsp */
		;
	if (!SKIP(c, "\x48\x8b") || !take_displacement(c, &displacement))
		return false;
	*word = (struct cpython_thread_word){.hops = 3,
					     .offset = {DTV_OF_THREAD, (int64_t)slot[0] * DTV_SIZE,
							(int64_t)slot[1] + displacement}};
	return true;
}

/* mov OFFSET(%rip),%rax: a word of the GOT that is the offset from fs; mov %fs:(%rax),%rax */
static bool by_got(struct code *c, struct target_memory *m, struct cpython_thread_word *word)
{
	uint64_t offset;
	int32_t got;

	if (!take_i32(c, &got) || !SKIP(c, "\x64\x48\x8b\x00") ||
	    target_memory__word(m, &offset, c->address - 4 + got))
		return false;
	*word = (struct cpython_thread_word){.hops = 1, .offset = {(int64_t)offset}};
	return true;
}

/* By the code of PyGILState_GetThisThreadState(). False: unknown code. The result must be tried. */
static bool find_by_code(const struct cpython_image *image, struct target_memory *m,
			 struct cpython_thread_word *word)
{
	const struct cpython_symbols *s = image->symbols;
	struct code c;
	int32_t offset;

	if (!s->gilstate_size)
		return false;
	c = (struct code){.at = s->gilstate_code,
			  .end = s->gilstate_code + s->gilstate_size,
			  .address = s->gilstate + image->bias};
	SKIP(&c, "\xf3\x0f\x1e\xfa");	  /* endbr64 */
	if (SKIP(&c, "\x55"))		  /* push %rbp */
		SKIP(&c, "\x48\x89\xe5"); /* mov %rsp,%rbp */
	SKIP(&c, "\x48\x83\xec\x08");	  /* sub $8,%rsp */
	if (SKIP(&c, "\x64\x48\x8b\x04\x25") && take_i32(&c, &offset)) {
		*word = (struct cpython_thread_word){.hops = 1, .offset = {offset}};
		return true;
	}
	if (SKIP(&c, "\x48\x8b\x05"))
		return by_got(&c, m, word);
	SKIP(&c, "\x66"); /* padding, for linkers that relax the call */
	return SKIP(&c, "\x48\x8d\x3d") && by_call(&c, m, word);
}

/* CPython's own storage is some 40 bytes; beyond there may be anything, even copies of the word. */
#define STATIC_SEARCHED	 256u /* bytes below the fs base */
#define MODULES_SEARCHED 64u
#define BLOCK_SEARCHED	 64u /* bytes of each module's storage */
#define COMPARED_MAX	 64u /* threads */
#define CANDIDATES_MAX	 64u

struct comparison {
	const struct cpython *py;
	struct target_memory *m;
	struct cpython_thread_word candidates[CANDIDATES_MAX];
	size_t count;
	uint32_t threads;
	bool by_module;
};

static void add_candidates(struct comparison *c, const uint64_t *words, size_t count,
			   uint64_t state, struct cpython_thread_word first)
{
	uint32_t last = first.hops - 1;
	int64_t base = first.offset[last];

	for (size_t i = 0; i < count && c->count < CANDIDATES_MAX; i++) {
		if (words[i] != state)
			continue;
		first.offset[last] = base + (int64_t)i * 8;
		c->candidates[c->count++] = first;
	}
}

static void look_below(struct comparison *c, const struct cpython_thread *t)
{
	const struct cpython_thread_word first = {.hops = 1, .offset = {-(int64_t)STATIC_SEARCHED}};
	uint64_t words[STATIC_SEARCHED / 8];

	if (!target_memory__read(c->m, words, sizeof(words), t->fs - STATIC_SEARCHED))
		add_candidates(c, words, STATIC_SEARCHED / 8, t->state, first);
}

static void look_at_modules(struct comparison *c, const struct cpython_thread *t)
{
	uint64_t dtv, block, words[BLOCK_SEARCHED / 8];

	if (target_memory__word(c->m, &dtv, t->fs + DTV_OF_THREAD))
		return;
	for (int64_t i = 1; i <= MODULES_SEARCHED; i++) {
		const struct cpython_thread_word first = {
			.hops = 3, .offset = {DTV_OF_THREAD, i * DTV_SIZE, 0}};

		if (target_memory__word(c->m, &block, dtv + i * DTV_SIZE))
			return;
		if (block && !target_memory__read(c->m, words, sizeof(words), block))
			add_candidates(c, words, BLOCK_SEARCHED / 8, t->state, first);
	}
}

/* A thread may have a state in several interpreters: the word has one of them. */
static void drop_others(struct comparison *c, const struct cpython_thread *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++) {
		uint64_t state, fs;

		if (!cpython_thread_word__state(&c->candidates[i], c->m, t->fs, &state) && state &&
		    !target_memory__word(c->m, &fs, state + c->py->layout.thread_id) && fs == t->fs)
			c->candidates[kept++] = c->candidates[i];
	}
	c->count = kept;
}

static int compare_thread(void *context, const struct cpython_thread *t)
{
	struct comparison *c = context;

	if (!t->fs)
		return 0;
	if (c->threads++)
		drop_others(c, t);
	else if (c->by_module)
		look_at_modules(c, t);
	else
		look_below(c, t);
	return c->threads >= COMPARED_MAX || !c->count;
}

/*
 * Finds the word that is the thread's state in the storage of each thread. As
 * cpython_thread_word__find(); CPYTHON_NOT_STARTED: more than one word is, at this moment.
 */
static enum cpython_verdict find_by_comparison(const struct cpython *py, struct target_memory *m,
					       struct cpython_thread_word *word)
{
	_cleanup_free_ struct comparison *c = calloc(1, sizeof(*c));

	if (!c)
		return CPYTHON_UNREADABLE;
	for (int by_module = 0; by_module < 2; by_module++) {
		*c = (struct comparison){.py = py, .m = m, .by_module = by_module};
		cpython__each_thread(py, m, compare_thread, c);
		if (!c->threads)
			return CPYTHON_NOT_STARTED;
		if (c->count == 1) {
			*word = c->candidates[0];
			return CPYTHON_OK;
		}
		if (c->count)
			return CPYTHON_NOT_STARTED;
	}
	return CPYTHON_THREADS_UNKNOWN;
}

/* ---- either ---------------------------------------------------------------------------------- */

enum cpython_verdict cpython_thread_word__find(const struct cpython *py,
					       const struct cpython_image *image,
					       struct target_memory *m,
					       struct cpython_thread_word *word)
{
	enum cpython_verdict verdict;

	*word = (struct cpython_thread_word){};
	if (py->layout.tss_key) {
		verdict = word_of_key(py, m, word);
		return verdict ? verdict : try_word(py, m, word);
	}
	if (find_by_code(image, m, word)) {
		verdict = try_word(py, m, word);
		if (verdict != CPYTHON_THREADS_UNKNOWN)
			return verdict;
	} else {
		verdict = try_word(py, m, NULL);
		if (verdict != CPYTHON_THREADS_UNKNOWN)
			return verdict;
	}
	return find_by_comparison(py, m, word);
}
