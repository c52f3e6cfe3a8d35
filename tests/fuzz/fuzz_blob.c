/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol answers as a child that was taken over, a forged cache file or a recording may have them. The input: how many
 * bytes come at a time, 7 bytes without meaning, then a blob. What is accepted can be read and encoded
 * again, and means the same then, however it came.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "stream/event_decode.h"
#include "stream/symbol_blob.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_protocol.h"
#include "symbolize/symbol_answers.h"

#define CONTROL 8

static void read_string(const char *s, bool may_miss)
{
	MUST(s || may_miss);
	if (s)
		MUST(strlen(s) < SYMBOL_STRING_MAX);
}

static void same_text(const char *a, const char *b)
{
	MUST(!a == !b && (!a || !strcmp(a, b)));
}

static void same_answer(const struct symbol_answer *a, const struct symbol_answer *b)
{
	MUST(a->result.frame_count == b->result.frame_count &&
	     a->result.elf_address == b->result.elf_address);
	for (size_t i = 0; i < a->result.frame_count; i++) {
		same_text(a->frames[i].function, b->frames[i].function);
		same_text(a->frames[i].file, b->frames[i].file);
		same_text(a->frames[i].definition_file, b->frames[i].definition_file);
		MUST(a->frames[i].function_address == b->frames[i].function_address &&
		     a->frames[i].line == b->frames[i].line);
	}
}

/* As an event of its own: the same, unless a reference had more text than an event may. */
static void try_event(const struct symbol_answer *answer)
{
	static _Alignas(8) char event[EVENT_SIZE_MAX], again[EVENT_SIZE_MAX];
	const struct symbol_event *e = (const struct symbol_event *)event;
	struct symbol_answer got;

	symbol_event__encode(event, 1, 2, &answer->result);
	MUST(!event_check(&e->header, sizeof(event)) && !symbol_event__decode(e, &got));
	MUST(symbol_blob__size_of(&answer->result) == e->header.size);
	symbol_event__encode(again, 1, 2, &got.result);
	MUST(!memcmp(event, again, e->header.size));
}

static size_t try_blob(const char *blob, size_t size, struct symbol_blob *copy)
{
	struct symbol_answer answer;
	size_t offset = 0, count = 0;

	for (; symbol_blob__next(blob, size, &offset, &answer) > 0; count++) {
		MUST(answer.result.frame_count <= SYMBOL_CHAIN_MAX);
		for (size_t i = 0; i < answer.result.frame_count; i++) {
			read_string(answer.frames[i].function, false);
			read_string(answer.frames[i].file, true);
			read_string(answer.frames[i].definition_file, true);
		}
		try_event(&answer);
		MUST(!symbol_blob__add(copy, answer.address, &answer.result));
	}
	return count;
}

/* The copy is another encoding of the same, and a copy of that is equal to it. */
static void try_copy(const struct symbol_blob *copy, size_t count)
{
	struct symbol_blob again = {};
	struct symbol_answer a, b;
	size_t at = 0, other = 0;

	MUST(try_blob(copy->bytes.data, copy->bytes.count, &again) == count);
	MUST(again.bytes.count == copy->bytes.count);
	while (symbol_blob__next(copy->bytes.data, copy->bytes.count, &at, &a) > 0) {
		MUST(symbol_blob__next(again.bytes.data, again.bytes.count, &other, &b) > 0);
		same_answer(&a, &b);
	}
	symbol_blob__fini(&again);
}

static int count_result(void *context, size_t index, const struct symbol_result *result)
{
	size_t *count = context;

	(void)result;
	MUST(index == *count);
	++*count;
	return 0;
}

/* The end of the input as the last message. */
static void try_report(struct sealed_answers *a, const char *blob, size_t size)
{
	static struct message_buffer message;

	message.frame.flags = MESSAGE_DONE;
	message.frame.size = 8 + sizeof(struct module_report);
	if (size < message.frame.size)
		return;
	memcpy(message.bytes, blob + size - message.frame.size, message.frame.size);
	MUST(!sealed_answers__take(a, &message) == a->finished);
}

/* From a child, in pieces. */
static void try_wire(const char *blob, size_t size, size_t step)
{
	static struct message_buffer message;
	struct sealed_answers a;
	size_t count = 0;
	int err = 0;

	sealed_answers__init(&a, 64);
	for (size_t at = 0; at < size && !err; at += step) {
		message.frame.size = at + step < size ? step : size - at;
		memcpy(message.bytes, blob + at, message.frame.size);
		err = sealed_answers__take(&a, &message);
	}
	if (!err)
		try_report(&a, blob, size);
	MUST(a.results <= a.expected + 1 && a.checked <= a.bytes.count);
	if (!err) {
		MUST(!sealed_answers__deliver(&a, count_result, &count) && count == 64);
		MUST(!a.finished || a.error || a.results == a.expected);
	}
	sealed_answers__fini(&a);
}

/* As the content of a file of the cache. */
static void try_file(const char *blob, size_t size)
{
	struct symbol_answers *empty = symbol_answers__new(), *answers;
	char *file = malloc(size + 1);

	MUST(empty && file);
	memcpy(file, blob, size);
	if (!symbol_answers__open(file, size, &answers)) {
		for (uint64_t address = 0; address < 16; address++)
			symbol_answers__find(answers, address);
		MUST(!symbol_answers__merge(empty, answers));
		symbol_answers__free(answers);
	}
	symbol_answers__free(empty);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_blob copy = {};
	size_t count;
	char *blob;

	if (size < CONTROL)
		return 0;
	size -= CONTROL;
	blob = malloc(size + 1);
	MUST(blob);
	memcpy(blob, data + CONTROL, size);
	count = try_blob(blob, size, &copy);
	try_copy(&copy, count);
	try_wire(blob, size, 1 + data[0] * 8);
	try_file(blob, size);
	symbol_blob__fini(&copy);
	free(blob);
	return 0;
}
