/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of labels, units and names of mappings, ours and those of others. */
#include "import/pprof_private.h"

#include <stdbool.h>
#include <string.h>

static bool is_word(const uint8_t *bytes, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(word, bytes, size);
}

enum label_kind pprof_label_kind(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *key;
		enum label_kind kind;
	} keys[] = {
		{"pid", LABEL_PID},
		{"process_id", LABEL_PID},
		{"process id", LABEL_PID},
		{"tid", LABEL_TID},
		{"thread_id", LABEL_TID},
		{"thread id", LABEL_TID},
		{"os thread id", LABEL_TID},
		{"thread", LABEL_THREAD},
		{"thread_name", LABEL_THREAD},
		{"thread.name", LABEL_THREAD},
		{"thread name", LABEL_THREAD},
		{"process", LABEL_PROCESS},
		{"process_name", LABEL_PROCESS},
		{"process name", LABEL_PROCESS},
		{"service_name", LABEL_SERVICE},
		{"comm", LABEL_COMM},
		{"cgroup", LABEL_CGROUP},
		{"gil", LABEL_GIL},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (is_word(bytes, size, keys[i].key))
			return keys[i].kind;
	return LABEL_OTHER;
}

enum gil_state pprof_gil_state(const uint8_t *bytes, size_t size)
{
	for (int state = GIL_UNKNOWN + 1; state < GIL_STATE_COUNT; state++)
		if (is_word(bytes, size, gil_state_name(state)))
			return state;
	return GIL_UNKNOWN;
}

uint64_t pprof_unit(const uint8_t *bytes, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"nanoseconds", 1}, {"nanosecond", 1},
		{"ns", 1},	    {"microseconds", 1000},
		{"us", 1000},	    {"milliseconds", 1000000},
		{"ms", 1000000},    {"seconds", 1000000000},
		{"s", 1000000000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (is_word(bytes, size, units[i].name))
			return units[i].ns;
	return 0;
}

enum dso_kind pprof_mapping_kind(const char *path, enum profile_category *category)
{
	if (!strncmp(path, "[kernel", 7) || !strncmp(path, "[guest.kernel", 13)) {
		*category = CATEGORY_KERNEL;
		return DSO_KERNEL;
	}
	if (!*path || !strncmp(path, "//anon", 6) || !strncmp(path, "[anon", 5)) {
		*category = CATEGORY_JIT;
		return DSO_JIT;
	}
	*category = strstr(path, ".so") || *path == '[' ? CATEGORY_LIBRARY : CATEGORY_USER;
	return strcmp(path, "[vdso]") ? DSO_FILE : DSO_VDSO;
}
