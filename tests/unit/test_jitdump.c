/* SPDX-License-Identifier: BSD-2-Clause */
/* Jitdumps, sound ones in pieces of any size and all kinds of damaged ones: testdata/jitdump.txt. */
#include "text_cases.h"

#include "base/cleanup.h"
#include "jit/follow/jit_find.h"
#include "jit/jitdump.h"

#include "unit/forge_jitdump.h"

/* ---- what is reported ---------------------------------------------------------------------------- */

struct reported {
	char text[4096];
	size_t used;
};

static void say(struct reported *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->used += vsnprintf(t->text + t->used, sizeof(t->text) - t->used, format, args);
	va_end(args);
}

static int on_load(void *context, const struct jitdump_load *l)
{
	struct reported *t = context;

	say(t, "load %llu %llx+%llx %s", (unsigned long long)l->time,
	    (unsigned long long)l->address, (unsigned long long)l->size, l->name);
	for (size_t i = 0; i < l->line_count; i++)
		say(t, " %llx=%s:%u:%u", (unsigned long long)l->lines[i].address, l->lines[i].file,
		    l->lines[i].line, l->lines[i].column);
	if (l->unwinding)
		say(t, " unwinding %zu/%zu %.3s", l->unwinding_size, l->eh_frame_header_size,
		    (const char *)l->unwinding);
	say(t, "\n");
	return 0;
}

static int on_move(void *context, const struct jitdump_move *m)
{
	say(context, "move %llu %llx>%llx+%llx\n", (unsigned long long)m->time,
	    (unsigned long long)m->from, (unsigned long long)m->to, (unsigned long long)m->size);
	return 0;
}

static int on_close(void *context, uint64_t time)
{
	say(context, "close %llu\n", (unsigned long long)time);
	return 0;
}

/* In pieces; the first error. */
static int feed(struct jitdump_reader *r, const struct dump *d, size_t piece,
		struct reported *reported)
{
	const struct jitdump_handler handler = {reported, on_load, on_move, on_close};
	int err = 0;

	reported->used = 0;
	reported->text[0] = 0;
	for (size_t at = 0; at < d->size && !err; at += piece) {
		size_t left = d->size - at, size = left < piece ? left : piece;
		_cleanup_free_ void *copy = malloc(size);

		memcpy(copy, d->bytes + at, size);
		err = jitdump_reader__feed(r, copy, size, &handler);
	}
	return err;
}

/* ---- dumps as text --------------------------------------------------------------------------- */

/* Numbers of 8 bytes, "N:4" of 4, 'text' with its NUL, "text" without. */
static void put_items(struct dump *d, char *at)
{
	for (; *at; at += strspn(at, " ")) {
		char *text = at + 1;

		if (*at == '\'' || *at == '"') {
			at = strchr(text, *at) + 1;
			put(d, text, (size_t)(at - text - 1));
			if (at[-1] == '\'')
				put(d, "", 1);
		} else {
			uint64_t number = strtoull(at, &at, 0);

			put(d, &number, *at == ':' ? 4 : 8);
			at += *at == ':' ? 2 : 0;
		}
	}
}

/* A line of a dump. */
static void put_text(struct dump *d, char *line)
{
	const char *word = strsep(&line, " ");
	uint64_t n[5] = {};
	size_t at;
	int read = 0;

	if (!strcmp(word, "header")) {
		sscanf(line, "%lx %lu %lu %lu", &n[0], &n[1], &n[2], &n[3]);
		put_header_as(d, n[0], n[1], n[2], n[3]);
	} else if (!strcmp(word, "load")) {
		sscanf(line, "%lu %lx %lu %lu %n", &n[0], &n[1], &n[2], &n[3], &read);
		put_load_cut(d, n[0], n[1], n[2], n[3], line + read);
	} else if (!strcmp(word, "move")) {
		sscanf(line, "%lu %lx %lx %lu", &n[0], &n[1], &n[2], &n[3]);
		put_move(d, n[0], n[1], n[2], n[3]);
	} else if (!strcmp(word, "record")) {
		sscanf(line, "%lu %lu %n", &n[0], &n[1], &read);
		at = begin_record(d, n[0], n[1]);
		put_items(d, line + read);
		end_record(d, at);
	} else {
		assert_string_equal(word, "bytes");
		put_items(d, line);
	}
}

/* What is read of a dump, and what is wrong with it. */
static void read_dump(FILE *out, struct dump *d, char *lines)
{
	_cleanup_(jitdump_reader__fini) struct jitdump_reader r = {};
	struct reported reported;
	int err;

	d->size = 0;
	for (char *line; (line = strsep(&lines, "\n"));)
		put_text(d, line);
	err = feed(&r, d, sizeof(d->bytes), &reported);
	fprintf(out, "%s", reported.text);
	if (err)
		text_put_error(out, err);
	else
		fprintf(out, "%llu loads, %llu bad, %llu left out%s",
			(unsigned long long)r.counts.loads,
			(unsigned long long)r.counts.bad_records, (unsigned long long)r.counts.left,
			r.tsc ? ", TSC" : "");
}

static struct dump sound_dump;
static char sound[1000];

/* The dump that is cut and torn. */
static void keep_sound(FILE *out, char *input)
{
	FILE *text = fmemopen(sound, sizeof(sound), "w");

	read_dump(text, &sound_dump, input);
	fclose(text);
	fputs(sound, out);
	*strrchr(sound, '\n') = '\0'; /* the line of counts is not reported */
	strcat(sound, "\n");
}

static void read_input(FILE *out, char *input)
{
	struct dump d;

	read_dump(out, &d, input);
}

static void is_dump_name(FILE *out, char *path)
{
	fputs(jit_is_dump(path) ? "yes" : "no", out);
}

static const struct text_verb verbs[] = {
	{"sound", keep_sound}, {"dump", read_input}, {"is a name of dumps", is_dump_name}, {}};

TEXT_TABLE("jitdump", verbs, NULL, NULL);

TEST(a_dump_reads_alike_in_pieces_of_any_size)
{
	struct dump d = sound_dump;

	for (size_t piece = 1; piece <= d.size; piece++) {
		_cleanup_(jitdump_reader__fini) struct jitdump_reader r = {};
		struct reported reported;

		assert_int_equal(feed(&r, &d, piece, &reported), 0);
		assert_string_equal(reported.text, sound);
		assert_true(r.tsc);
		assert_int_equal(r.counts.loads, 3);
		assert_int_equal(r.counts.bad_records, 0);
		assert_int_equal(jitdump_reader__torn(&r), 0);
	}
}

TEST(a_torn_dump_reports_whole_records_and_continues)
{
	struct dump d = sound_dump;

	for (size_t cut = 0; cut <= d.size; cut++) {
		struct dump first = d, second = d;
		_cleanup_(jitdump_reader__fini) struct jitdump_reader r = {};
		struct reported reported, rest;

		first.size = cut;
		second.size = d.size - cut;
		memmove(second.bytes, d.bytes + cut, second.size);
		assert_int_equal(feed(&r, &first, sizeof(d.bytes), &reported), 0);
		assert_memory_equal(reported.text, sound, reported.used);
		assert_int_equal(feed(&r, &second, sizeof(d.bytes), &rest), 0);
		assert_string_equal(rest.text, sound + reported.used);
	}
}
