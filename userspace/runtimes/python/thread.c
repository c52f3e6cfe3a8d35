/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/thread.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtimes/python/tls.h"

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
		err = target_memory__word(m, &t.fs, t.state + l->thread_id);
		if (!err)
			err = target_memory__word(m, &next, t.state + l->thread_next);
		if (!err)
			err = visit(context, &t);
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
		err = each_of_interpreter(py, m, interpreter, &left, visit, context);
		if (!err)
			err = target_memory__word(m, &interpreter,
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

/* Of glibc's block, the first and the third word are its own address; musl's fourth is too, or its third is not. */
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

/* struct pthread of glibc: the first keys' {sequence, value} are in it, and pointers to blocks of further ones. */
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
	if (cpython_tls__by_code(image, m, word)) {
		verdict = try_word(py, m, word);
		if (verdict != CPYTHON_THREADS_UNKNOWN)
			return verdict;
	} else {
		verdict = try_word(py, m, NULL);
		if (verdict != CPYTHON_THREADS_UNKNOWN)
			return verdict;
	}
	return cpython_tls__by_comparison(py, m, word);
}
