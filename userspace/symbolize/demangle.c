/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names made readable.
 *
 * A mangled name is a small program: by back references a kilobyte can describe an output larger
 * than any memory. So libiberty prints through callbacks into a buffer of fixed size, and a longjmp
 * leaves the demangler when that is full. This is sound because the demanglers of C++ and Rust keep
 * all state on the stack while they print to a callback. Their limit on recursion stays on, and
 * names longer than any compiler's are not demangled.
 *
 * The D demangler has no callback. A name in D grows by its back references ('Q') only, at most
 * threefold for every three of them, so a name with many of those is left mangled.
 *
 * The result is that of c++filt --no-verbose, as in perf: `std::string` is not expanded, names of
 * Rust have no hash.
 */
#include "symbolize/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/minmax.h"
#include "base/utf8.h"

#define MANGLED_MAX	 8192
#define D_BACKREFS_MAX	 12
#define DEMANGLE_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct output {
	char *buffer;
	size_t size; /* room, with the NUL */
	size_t length;
	jmp_buf full;
};

/* Length of the longest prefix of text[0..length) that does not end inside a character. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t start = length;

	/* The last character starts at most three bytes before the end. */
	while (start && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (!start || (unsigned char)text[start - 1] < 0xc0)
		return length;
	start--;
	return utf8_sequence(text + start, length - start) ? length : start;
}

static size_t copy_cut(char *buffer, size_t size, const char *text, size_t length)
{
	bool cut = length > size - 1;

	if (cut)
		length = size - 1;
	memcpy(buffer, text, length);
	if (cut)
		length = whole_characters(buffer, length);
	buffer[length] = '\0';
	return length;
}

static void append_text(const char *text, size_t length, void *context)
{
	struct output *out = context;
	size_t room = out->size - 1 - out->length;
	size_t taken = min_u64(length, room);

	if (!length)
		return; /* some come with a NULL */
	memcpy(out->buffer + out->length, text, taken);
	out->length += taken;
	if (length > room)
		longjmp(out->full, 1);
}

typedef int (*demangler_fn)(const char *mangled, int options, demangle_callbackref callback,
			    void *opaque);

/* Was there something to demangle? Then it is in the buffer, cut if need be. */
static bool print_within(demangler_fn demangler, const char *name, struct output *out)
{
	out->length = 0;
	if (setjmp(out->full)) {
		out->length = whole_characters(out->buffer, out->length);
		return true;
	}
	return demangler(name, DEMANGLE_OPTIONS, append_text, out) && out->length;
}

static bool demangle_d(const char *name, struct output *out)
{
	unsigned int backrefs = 0;
	char *text;

	for (const char *p = name; *p; p++)
		backrefs += *p == 'Q';
	if (backrefs > D_BACKREFS_MAX)
		return false;
	text = dlang_demangle(name, DEMANGLE_OPTIONS);
	if (!text)
		return false;
	out->length = copy_cut(out->buffer, out->size, text, strlen(text));
	free(text);
	return out->length > 0;
}

/* Rust first: its old scheme is C++'s with a hash at the end, "17h…". */
static bool demangle_into(const char *name, struct output *out)
{
	if (name[0] != '_')
		return false;
	switch (name[1]) {
	case 'R':
		return print_within(rust_demangle_callback, name, out);
	case 'Z':
		return (strstr(name, "17h") && print_within(rust_demangle_callback, name, out)) ||
		       print_within(cplus_demangle_v3_callback, name, out);
	case 'D':
		if (name[2] < '0' || name[2] > '9')
			return false;
		return demangle_d(name, out);
	case 'G': /* _GLOBAL__sub_I_…: constructors and destructors of a whole file */
		return print_within(cplus_demangle_v3_callback, name, out);
	default:
		return false;
	}
}

size_t demangle(const char *name, char *buffer, size_t size)
{
	size_t length = strnlen(name, MANGLED_MAX + 1);
	struct output out = {.buffer = buffer, .size = size};

	if (length <= MANGLED_MAX && demangle_into(name, &out)) {
		buffer[out.length] = '\0';
		return out.length;
	}
	return copy_cut(buffer, size, name, length);
}
