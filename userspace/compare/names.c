/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/order.h"

#define UNNAMED_ADDRESS "[JIT code without a name]"
#define RUST_HASH_SIZE	17 /* "h" and 16 digits */

/* Suffixes that compilers append after a dot: ".isra.0", ".cold", ".llvm.1234". */
static const char *const compiler_suffixes[] = {
	"isra",	 "constprop",  "part",	   "cold", "llvm", "lto_priv",
	"clone", "localalias", "unlikely", "str2", "warm", "specialized",
};

/* Digits behind these number functions without names: "lambda#2", "$_0", "run.func1". */
static const char *const numbered[] = {
	"#",	    "$_",	  "lambda$",	".func",     ".gowrap",	 "$Proxy",
	"Accessor", "__unnamed_", "Lambda$MH$", "$anonfun$", "_lambda_", "{closure#",
};

static bool is_digits(const char *at, const char *end)
{
	if (at == end)
		return false;
	while (at < end && isdigit((unsigned char)*at))
		at++;
	return at == end;
}

static bool is_hex(const char *at, const char *end)
{
	if (at == end)
		return false;
	while (at < end && isxdigit((unsigned char)*at))
		at++;
	return at == end;
}

static bool is_compiler_suffix(const char *at, const char *end)
{
	return any_of(
		compiler_suffixes, sizeof(compiler_suffixes) / sizeof(*compiler_suffixes), suffix,
		strlen(*suffix) == (size_t)(end - at) && !strncmp(*suffix, at, (size_t)(end - at)));
}

/* Cuts all ".SUFFIX" and ".SUFFIX.NUMBER" at the end; a number alone is kept. */
static void cut_compiler_suffixes(char *name)
{
	char *end = name + strlen(name), *number = NULL;

	for (char *dot; (dot = memrchr(name, '.', (size_t)(end - name))) && dot > name; end = dot) {
		if (is_compiler_suffix(dot + 1, end)) {
			*dot = '\0';
			number = NULL;
		} else if (!number && is_digits(dot + 1, end)) {
			number = dot;
		} else {
			return;
		}
	}
}

/* " [clone .isra.0]", written by c++filt. */
static void cut_clones(char *name)
{
	char *clone = strstr(name, " [clone ");

	if (clone > name)
		*clone = '\0';
}

/* "::h0123456789abcdef", the hash of a Rust function. */
static void cut_rust_hash(char *name)
{
	size_t size = strlen(name);
	char *hash = size > RUST_HASH_SIZE + 2 ? name + size - RUST_HASH_SIZE : NULL;

	if (hash && hash[-1] == ':' && hash[-2] == ':' && *hash == 'h' &&
	    is_hex(hash + 1, name + size))
		hash[-2] = '\0';
}

/* "+0x1f", an offset in a function. */
static void cut_offset(char *name)
{
	char *plus = strrchr(name, '+');

	if (plus && plus > name && !strncmp(plus, "+0x", 3) &&
	    is_hex(plus + 3, plus + strlen(plus)))
		*plus = '\0';
}

/* Removes the bytes from `at` to `end`. */
static void take_out(char *at, const char *end)
{
	memmove(at, end, strlen(end) + 1);
}

static void cut_numbers_behind(char *name, const char *mark)
{
	for (char *at = strstr(name, mark); at; at = strstr(at, mark)) {
		char *end = at += strlen(mark);

		while (isdigit((unsigned char)*end))
			end++;
		if (end > at && !isalpha((unsigned char)*end) && *end != '_')
			take_out(at, end);
		/* the numbers of functions within such a function: "run.func1.2" */
		while (*at == '.' && isdigit((unsigned char)at[1]) && mark[0] == '.') {
			for (end = at + 1; isdigit((unsigned char)*end); end++)
				;
			take_out(at, end);
		}
	}
}

/* A Java hidden class with an address: "$$Lambda$14/0x7f12.run", "LambdaForm$MH/0x7f12". */
static void cut_hidden_class(char *name)
{
	char *slash = strstr(name, "/0x"), *end;

	if (!slash || slash == name)
		return;
	for (end = slash + 3; isxdigit((unsigned char)*end); end++)
		;
	take_out(slash, end);
	while (slash > name && isdigit((unsigned char)slash[-1])) {
		slash--;
		take_out(slash, slash + 1);
	}
}

/* "bpf_prog_0123456789abcdef_name": the tag is a hash of its instructions. */
static void cut_bpf_tag(char *name)
{
	static const char prefix[] = "bpf_prog_";
	char *tag = name + sizeof(prefix) - 1;

	if (!strncmp(name, prefix, sizeof(prefix) - 1) && strlen(tag) > 16 && tag[16] == '_' &&
	    is_hex(tag, tag + 16))
		take_out(tag, tag + 17);
}

/* "[libfoo.so.1.2.3]" and "[libfoo-1.2.3.so]": another version is the same library. */
static void cut_library_version(char *name)
{
	char *so = *name == '[' ? strstr(name, ".so") : NULL, *dash;

	if (!so || !strchr(so, ']'))
		return;
	if (so[3] == '.' && isdigit((unsigned char)so[4]))
		take_out(so + 3, strchr(so, ']'));
	dash = memrchr(name, '-', (size_t)(so - name));
	if (dash && dash > name + 1 && isdigit((unsigned char)dash[1]) &&
	    strspn(dash + 1, "0123456789.") >= (size_t)(so - dash - 1))
		take_out(dash, so);
}

void stable_name(char *out, size_t size, const char *name)
{
	size_t length = strnlen(name, size - 1);

	memcpy(out, name, length);
	out[length] = '\0';
	if (!strncmp(out, "0x", 2) && is_hex(out + 2, out + length)) {
		out[0] = '\0';
		strncat(out, UNNAMED_ADDRESS, size - 1);
		return;
	}
	cut_clones(out);
	cut_offset(out);
	cut_rust_hash(out);
	cut_compiler_suffixes(out);
	cut_hidden_class(out);
	cut_bpf_tag(out);
	cut_library_version(out);
	for (size_t i = 0; i < sizeof(numbered) / sizeof(*numbered); i++)
		cut_numbers_behind(out, numbered[i]);
	if (!*out)
		strncat(out, "[unknown]", size - 1);
}
