/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HotSpot describes its own structures for debuggers (the serviceability agent): libjvm.so exports
 * arrays with the name of each type and field and where it is, and the layout of these arrays
 * (hotspot/share/runtime/vmStructs.hpp). So it is found where it keeps the values of its flags, in any version
 * since JDK 7. The memory is a tenant's: nothing in it is believed but by value.
 */
#include "jitwatch/hotspot.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "jitwatch/process_memory.h"

#define ENTRIES_MAX 20000u /* JDK 17 has 2,500 fields and 1,400 flags */
#define ENTRY_MAX   256u
#define NAME_SIZE   40

/* What is exported, all of them 64-bit variables. */
enum exported {
	STRUCTS,
	STRUCT_STRIDE,
	STRUCT_TYPE,
	STRUCT_FIELD,
	STRUCT_OFFSET,
	STRUCT_ADDRESS,
	TYPES,
	TYPE_STRIDE,
	TYPE_NAME,
	TYPE_SIZE,
	EXPORTED_COUNT
};

const char *const hotspot_symbol_names[HOTSPOT_SYMBOLS] = {
	[STRUCTS] = "gHotSpotVMStructs",
	[STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[TYPES] = "gHotSpotVMTypes",
	[TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};

_Static_assert(EXPORTED_COUNT == HOTSPOT_SYMBOLS, "all of them");

struct jvm {
	pid_t pid;
	uint64_t values[EXPORTED_COUNT];
	/* of JVMFlag, which was called Flag up to JDK 8 */
	uint64_t flags, flag_count; /* addresses of the static members */
	uint64_t name_offset, value_offset;
	uint64_t flag_size;
	unsigned int found;
};

/* Is this string at the address? Reads only its length, because memory may end after it. */
static bool is_string(const struct jvm *jvm, uint64_t address, const char *wanted)
{
	char text[NAME_SIZE];
	size_t size = strlen(wanted) + 1;

	return size <= sizeof(text) && !process_memory__read(jvm->pid, text, size, address) &&
	       !memcmp(text, wanted, size);
}

static int read_exported(struct jvm *jvm, const struct hotspot_symbols *symbols, uint64_t bias)
{
	for (unsigned int i = 0; i < EXPORTED_COUNT; i++) {
		int err = symbols->address[i] ? process_memory__read(jvm->pid, &jvm->values[i],
								     sizeof(jvm->values[i]),
								     symbols->address[i] + bias)
					      : -ENODATA;

		if (err)
			return err;
	}
	if (jvm->values[STRUCT_STRIDE] > ENTRY_MAX || jvm->values[TYPE_STRIDE] > ENTRY_MAX)
		return -ENODATA;
	return 0;
}

static uint64_t word_at(const unsigned char *entry, uint64_t offset)
{
	uint64_t word = 0;

	if (offset <= ENTRY_MAX - sizeof(word))
		memcpy(&word, entry + offset, sizeof(word));
	return word;
}

static bool is_flag_type(const struct jvm *jvm, uint64_t name)
{
	return is_string(jvm, name, "JVMFlag") || is_string(jvm, name, "Flag");
}

/* One field of the type that flags have. */
static void note_field(struct jvm *jvm, const unsigned char *entry)
{
	uint64_t name = word_at(entry, jvm->values[STRUCT_FIELD]);
	const struct {
		const char *name;
		uint64_t *to, from;
	} fields[] = {
		{"flags", &jvm->flags, jvm->values[STRUCT_ADDRESS]},
		{"numFlags", &jvm->flag_count, jvm->values[STRUCT_ADDRESS]},
		{"_name", &jvm->name_offset, jvm->values[STRUCT_OFFSET]},
		{"_addr", &jvm->value_offset, jvm->values[STRUCT_OFFSET]},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!is_string(jvm, name, fields[i].name))
			continue;
		*fields[i].to = word_at(entry, fields[i].from);
		jvm->found++;
	}
}

/* Entries of an array that ends with an entry without a name. */
static int each_entry(struct jvm *jvm, uint64_t array, uint64_t stride, uint64_t name_offset,
		      void (*visit)(struct jvm *jvm, const unsigned char *entry))
{
	uint64_t last_type = 0;
	bool wanted = false;

	for (unsigned int i = 0; i < ENTRIES_MAX; i++) {
		unsigned char entry[ENTRY_MAX] = {};
		int err = process_memory__read(jvm->pid, entry, stride, array + i * stride);
		uint64_t type = word_at(entry, name_offset);

		if (err)
			return err;
		if (!type)
			return 0;
		if (type != last_type)
			wanted = is_flag_type(jvm, type);
		last_type = type;
		if (wanted)
			visit(jvm, entry);
	}
	return -ENODATA;
}

static void note_type(struct jvm *jvm, const unsigned char *entry)
{
	jvm->flag_size = word_at(entry, jvm->values[TYPE_SIZE]);
	jvm->found++;
}

static int find_flags(struct jvm *jvm)
{
	int err = each_entry(jvm, jvm->values[STRUCTS], jvm->values[STRUCT_STRIDE],
			     jvm->values[STRUCT_TYPE], note_field);

	if (!err)
		err = each_entry(jvm, jvm->values[TYPES], jvm->values[TYPE_STRIDE],
				 jvm->values[TYPE_NAME], note_type);
	if (err)
		return err;
	return jvm->found == 5 && jvm->flag_size && jvm->flag_size <= ENTRY_MAX ? 0 : -ENODATA;
}

static int read_flag(const struct jvm *jvm, const char *name)
{
	uint64_t flags, count = 0;
	int err = process_memory__read(jvm->pid, &flags, sizeof(flags), jvm->flags);

	if (!err)
		err = process_memory__read(jvm->pid, &count, sizeof(count), jvm->flag_count);
	for (uint64_t i = 0; i < count && i < ENTRIES_MAX && !err; i++) {
		unsigned char entry[ENTRY_MAX] = {}, value;

		err = process_memory__read(jvm->pid, entry, jvm->flag_size,
					   flags + i * jvm->flag_size);
		if (err || !is_string(jvm, word_at(entry, jvm->name_offset), name))
			continue;
		err = process_memory__read(jvm->pid, &value, sizeof(value),
					   word_at(entry, jvm->value_offset));
		return err ? err : value != 0;
	}
	return err ? err : -ENODATA;
}

int hotspot__read_frame_pointer_flag(pid_t pid, const struct hotspot_symbols *symbols,
				     uint64_t bias)
{
	struct jvm jvm = {.pid = pid};
	int err = read_exported(&jvm, symbols, bias);

	if (!err)
		err = find_flags(&jvm);
	return err ? err : read_flag(&jvm, "PreserveFramePointer");
}
