/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof perf-map: the entries of a perf map for an address, and the entries that are not stale. A
 * map is in order of time: an entry is stale if a later one has a part of its addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/output_file.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "jit/jit_timeline.h"
#include "jit/perf_map.h"

#define READ_SIZE  (1u << 20)
#define SHOWN_SIZE 4096

struct text_span {
	size_t offset;
	uint32_t size;
};

/* A map, whole: entry i has ranges[i], and names[i] in `text`. */
struct map {
	VEC(struct code_range) ranges;
	VEC(struct text_span) names;
	VEC(char) text;
	bool *fresh;
	size_t fresh_count;
	struct perf_map_reader reader;
};

static void map__fini(struct map *m)
{
	vec_free(&m->ranges);
	vec_free(&m->names);
	vec_free(&m->text);
	free(m->fresh);
	perf_map_reader__fini(&m->reader);
}

static int keep_entry(void *context, const struct perf_map_entry *entry)
{
	struct text_span name = {.size = entry->name_size};
	struct map *m = context;

	name.offset = m->text.count;
	return vec_push(&m->ranges, ((struct code_range){entry->start, entry->end}))
			?: vec_push(&m->names, name)
			?: vec_append(&m->text, entry->name, entry->name_size);
}

static int read_entries(struct map *m, int fd)
{
	_cleanup_free_ char *bytes = malloc(READ_SIZE);
	ssize_t got = 1;
	int err = bytes ? 0 : -ENOMEM;

	while (!err && got) {
		got = read(fd, bytes, READ_SIZE);
		if (got < 0 && errno == EINTR)
			continue;
		err = got < 0 ? -errno
			      : perf_map_reader__feed(&m->reader, bytes, got, keep_entry, m);
	}
	return err ? err : perf_map_reader__finish(&m->reader, keep_entry, m);
}

static int load_map(struct map *m, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : read_entries(m, fd);

	if (!err) {
		m->fresh = calloc(m->ranges.count + 1, sizeof(*m->fresh));
		err = m->fresh ? find_fresh(m->ranges.data, m->ranges.count, m->fresh) : -ENOMEM;
	}
	if (err) {
		log_print(LOG_ERROR, "cannot read %s: %s", path, strerror(-err));
		return err;
	}
	for (size_t i = 0; i < m->ranges.count; i++)
		m->fresh_count += m->fresh[i];
	if (m->reader.bad_lines)
		log_print(LOG_WARNING, "%s: %llu malformed lines", path,
			  (unsigned long long)m->reader.bad_lines);
	return 0;
}

static bool has_address(const struct code_range *range, uint64_t address)
{
	return range->start == address || (range->start < address && address < range->end);
}

/* As a map has it: the name's bytes as they are. */
static void write_entry(const struct map *m, size_t i, FILE *out)
{
	const struct code_range *range = &m->ranges.data[i];

	fprintf(out, "%llx %llx ", (unsigned long long)range->start,
		(unsigned long long)(range->end - range->start));
	fwrite(m->text.data + m->names.data[i].offset, 1, m->names.data[i].size, out);
	fputc('\n', out);
}

/* ---- find ------------------------------------------------------------------------------------ */

static void print_matches(const struct map *m, const char *what, uint64_t address, bool only_fresh)
{
	char name[SHOWN_SIZE], shown[SHOWN_SIZE];
	size_t count = 0;

	for (size_t i = 0; i < m->ranges.count; i++)
		count += has_address(&m->ranges.data[i], address) && (m->fresh[i] || !only_fresh);
	printf("%s: %zu entries\n", what, count);
	for (size_t i = 0; i < m->ranges.count; i++) {
		const struct code_range *range = &m->ranges.data[i];
		const struct text_span *span = &m->names.data[i];

		if (!has_address(range, address) || (only_fresh && !m->fresh[i]))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)min_u64(span->size, SHOWN_SIZE),
			 m->text.data + span->offset);
		printf("  %llx %llx %s\n", (unsigned long long)range->start,
		       (unsigned long long)(range->end - range->start),
		       utf8_sanitize(shown, sizeof(shown), name));
	}
}

static int parse_address(const char *text, uint64_t *address)
{
	char *end;

	errno = 0;
	*address = strtoull(text, &end, 16);
	return errno || end == text || *end || *text == '-' || *text == '+' || *text == ' '
		       ? -EINVAL
		       : 0;
}

static int find_address(struct map *m, char **arguments)
{
	uint64_t address;

	if (parse_address(arguments[1], &address))
		return usage_error(&cmd_perf_map, "%s: invalid address (expected hex)",
				   arguments[1]);
	if (load_map(m, arguments[0]))
		return EXIT_FAILED;
	printf("Total: %zu entries\nFresh: %zu entries\n", m->ranges.count, m->fresh_count);
	print_matches(m, "All Matches", address, false);
	print_matches(m, "Fresh Matches", address, true);
	return EXIT_DONE;
}

/* ---- tidy ------------------------------------------------------------------------------------ */

static int tidy_map(const struct map *m, FILE *out)
{
	for (size_t i = 0; i < m->ranges.count; i++)
		if (m->fresh[i])
			write_entry(m, i, out);
	return 0;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* Fresh entries do not overlap, so they can be searched by their starts. */
struct fresh_index {
	const struct map *map;
	VEC(uint32_t) entries;
};

static int compare_starts(const void *a, const void *b, void *context)
{
	const struct code_range *ranges = context;
	const uint32_t *x = a, *y = b;

	return order_of(ranges[*x].start, ranges[*y].start) ?: order_of(*x, *y);
}

static int index_fresh(struct fresh_index *index)
{
	const struct map *m = index->map;

	for (uint32_t i = 0; i < m->ranges.count; i++) {
		if (m->fresh[i] && vec_push(&index->entries, i))
			return -ENOMEM;
	}
	vec_sort_r(&index->entries, compare_starts, m->ranges.data);
	return 0;
}

/* The entry that has the address; of several that begin at the same place, the last. */
static const struct text_span *name_at(const struct fresh_index *index, uint64_t address)
{
	const struct code_range *ranges = index->map->ranges.data;
	size_t count = partition_point(index->entries.data, index->entries.count, entry,
				       ranges[*entry].start <= address);

	for (; count; count--) {
		uint32_t entry = index->entries.data[count - 1];

		if (has_address(&ranges[entry], address))
			return &index->map->names.data[entry];
		/* only single addresses can lie inside another entry */
		if (ranges[entry].start != ranges[entry].end)
			break;
	}
	return NULL;
}

/*
 * A frame as perf script prints it, "	ADDRESS SYMBOL (/tmp/perf-PID.map)": where its symbol begins
 * and ends. False: it is another line.
 */
static bool find_symbol(const char *line, size_t size, uint64_t *address, size_t *begin,
			size_t *end)
{
	static const char MAP[] = " (/tmp/perf-";
	const char *at = line, *stop = line + size, *map;

	while (at < stop && (*at == ' ' || *at == '\t'))
		at++;
	if (at == line)
		return false;
	if (parse_hex(&at, address) || at >= stop || *at != ' ')
		return false;
	*begin = at + 1 - line;
	if (size < 5 || memcmp(stop - 5, ".map)", 5))
		return false;
	for (map = stop - sizeof(MAP); map >= line + *begin; map--)
		if (!memcmp(map, MAP, sizeof(MAP) - 1))
			break;
	*end = map - line;
	if (map < line + *begin)
		return false;
	for (map += sizeof(MAP) - 1; map < stop - 5; map++)
		if (*map < '0' || *map > '9')
			return false;
	return true;
}

static void update_line(const struct fresh_index *index, const char *line, size_t size, FILE *out)
{
	size_t body = size, begin, end;
	const struct text_span *name = NULL;
	uint64_t address;

	while (body && (line[body - 1] == '\n' || line[body - 1] == '\r'))
		body--;
	if (find_symbol(line, body, &address, &begin, &end))
		name = name_at(index, address);
	if (!name) {
		fwrite(line, 1, size, out);
		return;
	}
	fwrite(line, 1, begin, out);
	fwrite(index->map->text.data + name->offset, 1, name->size, out);
	fwrite(line + end, 1, size - end, out);
}

static int update_stacks(const struct map *m, const char *path, FILE *out)
{
	struct fresh_index index = {.map = m};
	_cleanup_fclose_ FILE *stacks = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int err = stacks ? index_fresh(&index) : -errno;

	while (!err && (size = getline(&line, &room, stacks)) > 0)
		update_line(&index, line, size, out);
	if (!err && ferror(stacks))
		err = -EIO;
	vec_free(&index.entries);
	if (err)
		log_print(LOG_ERROR, "cannot read %s: %s", path, strerror(-err));
	return err;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* tidy MAP, update MAP STACKS */
static int rewrite_map(struct map *m, char **arguments, bool updates, const char *output)
{
	struct output_file *file;
	int err;

	if (load_map(m, arguments[0]))
		return EXIT_FAILED;
	err = output_file__open(output, &file);
	if (!err) {
		FILE *out = output_file__stream(file);

		if (updates ? update_stacks(m, arguments[1], out) : tidy_map(m, out)) {
			output_file__abort(file);
			return EXIT_FAILED;
		}
		err = output_file__commit(file);
	}
	if (err)
		log_print(LOG_ERROR, "cannot write %s: %s", output, strerror(-err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_verb(const char *verb, int count, char **arguments, const char *output)
{
	struct map map = {};
	int status;

	if (!strcmp(verb, "find") && count == 2 && !output)
		status = find_address(&map, arguments);
	else if (!strcmp(verb, "tidy") && count == 1)
		status = rewrite_map(&map, arguments, false, output ? output : "-");
	else if (!strcmp(verb, "update") && count == 2)
		status = rewrite_map(&map, arguments, true, output ? output : "-");
	else
		status = usage_error(&cmd_perf_map, "expected %s", cmd_perf_map.arguments);
	map__fini(&map);
	return print_ended(0) ? EXIT_FAILED : status;
}

static int run_perf_map(int argc, char **argv)
{
	const char *output = NULL;
	int status = options__parse(&cmd_perf_map, &output, argc, argv);

	if (status)
		return status;
	if (optind == argc)
		return usage_error(&cmd_perf_map, "expected %s", cmd_perf_map.arguments);
	return run_verb(argv[optind], argc - optind - 1, argv + optind + 1, output);
}

static const struct cli_option rows[] = {{"output", 'o', .has_value = true, .take = option_text},
					 {}};

const struct command cmd_perf_map = {
	.name = "perf-map",
	.arguments = "find MAP ADDRESS | tidy MAP [-o OUT] | update MAP STACKS [-o OUT]",
	.summary = "find, drop or bypass stale entries of a perf map",
	.help = "  sysprof perf-map find /tmp/perf-12.map 227bbdff955b\n"
		"  sysprof perf-map tidy /tmp/perf-12.map -o fresh.map\n"
		"  sysprof perf-map update /tmp/perf-12.map stacks.txt    (from perf script)\n"
		"\n"
		"An entry is stale if a later entry overlaps it.\n"
		"\n"
		"  -o, --output OUT   write to that file instead of standard output\n",
	.run = run_perf_map,
	.options = rows,
};
