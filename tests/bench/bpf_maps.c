/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_maps
 *
 * Looks into BPF maps of another program, and sets aside what is in one, so that what the program does without it can be
 * measured beside what it does with it. Each line on standard input is a request, answered by one line:
 *
 *  name MAP       "=" and the map's name, or "gone"
 *  words MAP KEY  the first eight words of the value at a key, a number of 32 bits
 *  aside MAP      takes out all that is in a hash, or makes all zero in an array; how many entries that were
 *  back MAP       puts it back
 */
#include <linux/bpf.h>

#include "../fixtures/fixture.h"

#define ENTRIES_MAX 1024u
#define KEY_MAX	    8u
#define VALUE_MAX   512u
#define WORDS	    8u

struct entry {
	unsigned char key[KEY_MAX], value[VALUE_MAX];
};

static struct entry kept[ENTRIES_MAX];
static uint32_t kept_count;

static long bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int open_map(uint32_t id, struct bpf_map_info *info)
{
	union bpf_attr by_id = {.map_id = id}, by_fd = {};
	long fd = bpf(BPF_MAP_GET_FD_BY_ID, &by_id);

	by_fd.info.bpf_fd = (uint32_t)fd;
	by_fd.info.info_len = sizeof(*info);
	by_fd.info.info = (uintptr_t)info;
	if (fd >= 0 && bpf(BPF_OBJ_GET_INFO_BY_FD, &by_fd))
		die(1, "cannot look at map %u: %s", id, strerror(errno));
	return (int)fd;
}

static long look_up(int map, const void *key, void *value)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = (uintptr_t)key, .value = (uintptr_t)value};

	return bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}

static void put(int map, const void *key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = (uintptr_t)key, .value = (uintptr_t)value};

	if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
		die(1, "cannot write to a map: %s", strerror(errno));
}

static void take_out(int map, const void *key)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map, .key = (uintptr_t)key};

	if (bpf(BPF_MAP_DELETE_ELEM, &attr))
		die(1, "cannot delete from a map: %s", strerror(errno));
}

/* The key behind `key`; NULL: the first one. False: there is none. */
static int next_key(int map, const void *key, void *next)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = (uintptr_t)key, .next_key = (uintptr_t)next};

	return !bpf(BPF_MAP_GET_NEXT_KEY, &attr);
}

static int is_zero(const unsigned char *value)
{
	static const unsigned char zero[VALUE_MAX];

	return !memcmp(value, zero, VALUE_MAX);
}

static void set_aside(int map, const struct bpf_map_info *info)
{
	static const unsigned char zero[VALUE_MAX];
	unsigned char key[KEY_MAX] = {}, next[KEY_MAX];

	kept_count = 0;
	for (int more = next_key(map, NULL, next); more && kept_count < ENTRIES_MAX;
	     more = next_key(map, key, next)) {
		struct entry *e = &kept[kept_count];

		*e = (struct entry){};
		memcpy(key, next, sizeof(key));
		memcpy(e->key, next, sizeof(key));
		if (!look_up(map, e->key, e->value) && !is_zero(e->value))
			kept_count++;
	}
	for (uint32_t i = 0; i < kept_count; i++)
		if (info->type == BPF_MAP_TYPE_ARRAY)
			put(map, kept[i].key, zero);
		else
			take_out(map, kept[i].key);
	fact("%u", kept_count);
}

static void put_back(int map)
{
	for (uint32_t i = 0; i < kept_count; i++)
		put(map, kept[i].key, kept[i].value);
	fact("%u", kept_count);
}

static void report_words(int map, uint32_t key)
{
	static uint64_t words[VALUE_MAX / sizeof(uint64_t)];

	memset(words, 0, sizeof(words));
	if (look_up(map, &key, words)) {
		fact("gone");
		return;
	}
	for (uint32_t i = 0; i < WORDS; i++)
		printf("%llu%c", (unsigned long long)words[i], i + 1 < WORDS ? ' ' : '\n');
	fflush(stdout);
}

static void serve(const char *what, uint32_t id, uint32_t key)
{
	struct bpf_map_info info = {};
	int map = open_map(id, &info);

	if (map < 0 || info.key_size > KEY_MAX)
		fact("gone");
	else if (!strcmp(what, "name"))
		fact("=%.*s", (int)sizeof(info.name), info.name);
	else if (info.value_size > VALUE_MAX)
		die(1, "map %u has values of %u bytes", id, info.value_size);
	else if (!strcmp(what, "words"))
		report_words(map, key);
	else if (!strcmp(what, "aside"))
		set_aside(map, &info);
	else
		put_back(map);
	if (map >= 0)
		close(map);
}

int main(void)
{
	char line[64], what[16];
	uint32_t id, key;

	fact("ready");
	while (fgets(line, sizeof(line), stdin)) {
		key = 0;
		if (sscanf(line, "%15s %u %u", what, &id, &key) < 2)
			die(2, "bpf_maps: %s", line);
		serve(what, id, key);
	}
	return 0;
}
