/* SPDX-License-Identifier: BSD-2-Clause */
/* From the constants that V8 publishes, what can be read of it, and why not. */
#include "unit.h"
#include "elf/elf_exports.h"
#include "elf/elf_file.h"
#include "runtimes/v8/layout.h"
#include "unit/forge_elf.h"
#include "unit/v8_support.h"

static enum v8_verdict verdict_with(enum v8_version version, const char *changed, int32_t to)
{
	struct v8_forged f = {version, changed, to};
	struct v8_layout l;

	bool usable = v8_layout__fill(&l, v8_forged_constant, &f);

	assert_int_equal(usable, l.verdict <= V8_NAMES_ONLY);
	assert_true(*v8_verdict__text(l.verdict));
	return l.verdict;
}

TEST(each_version_has_its_own_layout)
{
	struct v8_forged f = {.version = V8_NODE_20};
	struct v8_layout l;

	assert_true(v8_layout__fill(&l, v8_forged_constant, &f));
	assert_int_equal(l.verdict, V8_WHOLE);
	assert_int_equal(l.off_context, -8);
	assert_int_equal(l.off_function, -16);
	assert_int_equal(l.off_shared, 24);
	assert_int_equal(l.off_bytecode_offset, -40);
	assert_int_equal(v8_layout__bytecode_bias(&l), 53);
	assert_int_equal(l.code_start, 40);
	assert_int_equal(l.code_deopt, 16);
	assert_int_equal(l.sfi_unique_id, V8_NO_OFFSET);
	assert_int_equal(l.encoding, V8_POSITIONS_ZIGZAG);
	assert_int_equal(l.bytecode_positions, 32);
	assert_string_equal(l.frame_types[1], "entry");
	assert_int_equal(l.frame_wasm, 4);
	assert_int_equal(l.frames_made, 1ull << 5 | 1ull << 27);
	assert_int_equal(l.frames_made_leaf, 1ull << 27);
	assert_int_equal(l.type_wasm_module, 2156);
	assert_int_equal(l.script_wasm, 80);
	f.version = V8_NODE_24;
	assert_true(v8_layout__fill(&l, v8_forged_constant, &f));
	assert_int_equal(l.verdict, V8_WHOLE);
	assert_int_equal(l.off_shared, 32);
	assert_int_equal(l.sfi_unique_id, 64);
	assert_int_equal(l.sfi_size, 68);
	assert_int_equal(l.code_deopt, 8);
	assert_int_equal(l.code_positions, 16);
	assert_int_equal(l.encoding, V8_POSITIONS_ZIGZAG);
	assert_int_equal(l.scope_module, 5);
	assert_int_equal(l.deopt_sfi, 7);
	f.version = V8_NODE_26;
	assert_true(v8_layout__fill(&l, v8_forged_constant, &f));
	assert_int_equal(l.encoding, V8_POSITIONS_BREAKABLE);
}

TEST(missing_or_unusual_constants_have_their_verdict)
{
	assert_int_equal(verdict_with(V8_NODE_20, "v8dbg_TaggedSize", NONE), V8_ABSENT);
	assert_int_equal(verdict_with(V8_NODE_20, "v8dbg_TaggedSize", 4), V8_COMPRESSED);
	assert_int_equal(verdict_with(V8_NODE_20, "v8dbg_TaggedSize", 16), V8_CONTRADICTED);
	assert_int_equal(verdict_with(V8_NODE_20, "_ZN2v88internal7Version6major_E", 9),
			 V8_TOO_OLD);
	assert_int_equal(verdict_with(V8_NODE_20, "_ZN2v88internal7Version6major_E", NONE),
			 V8_INCOMPLETE);
	assert_int_equal(verdict_with(V8_NODE_26, "_ZN2v88internal7Version6major_E", 15),
			 V8_NAMES_ONLY);
	/* between those two, the encoding of positions changed */
	assert_int_equal(verdict_with(V8_NODE_24, "_ZN2v88internal7Version6minor_E", 9),
			 V8_NAMES_ONLY);
	assert_int_equal(verdict_with(V8_NODE_20, "_ZN2v88internal7Version6minor_E", 7),
			 V8_NO_INLINED);
	assert_int_equal(verdict_with(V8_NODE_24,
				      "v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex",
				      NONE),
			 V8_NO_INLINED);
	assert_int_equal(verdict_with(V8_NODE_24, "v8dbg_SmiShiftSize", 0), V8_CONTRADICTED);
	assert_int_equal(verdict_with(V8_NODE_24, "v8dbg_SmiShiftSize", INT32_MAX),
			 V8_CONTRADICTED);
	assert_int_equal(verdict_with(V8_NODE_24, "v8dbg_HeapObjectTag", 0), V8_CONTRADICTED);
	assert_int_equal(verdict_with(V8_NODE_24, "v8dbg_off_fp_function", -24), V8_CONTRADICTED);
	assert_int_equal(verdict_with(V8_NODE_24, "v8dbg_class_String__length__int32_t", NONE),
			 V8_INCOMPLETE);
}

/* Whatever one constant is, what is filled in is an offset in an object, or nothing is. */
TEST(no_constant_makes_an_offset_out_of_bounds)
{
	static const int32_t values[] = {0,    -1,     -8,	7,	   1024,
					 1025, 0xffff, 0x10000, INT32_MAX, -INT32_MAX};

	for (size_t i = 0; i < sizeof(v8_constants) / sizeof(*v8_constants); i++) {
		for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
			struct v8_forged f = {V8_NODE_24, v8_constants[i].name, values[k]};
			struct v8_layout l;

			if (!v8_layout__fill(&l, v8_forged_constant, &f))
				continue;
			assert_in_range(l.off_shared, 0, 1024);
			assert_in_range(l.sfi_name, 0, 1024);
			assert_in_range(l.sfi_size, 0, 1200);
			assert_in_range(l.string_chars, 0, 1024);
			if (l.has_code)
				assert_in_range(l.stream_start, 16, 64);
		}
	}
}

/* ---- in a file ------------------------------------------------------------------------------- */

enum { DYNAMIC = 0x700, HASH = 0x800, SYMBOLS = 0x900, NAMES = 0xa00, VALUES = 0xb00 };

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Two symbols that are found by their hashes: "one" has bytes, "zero" lies behind those of its segment. */
static void forge_exports(struct image *im)
{
	static const char names[] = "\0one\0zero";
	struct cursor c;

	memset(im, 0, sizeof(*im));
	im->is_64 = true;
	im->program_headers = 64;
	c = (struct cursor){im, im->program_headers};
	segment(&c, PT_LOAD, PF_R, 0, 0x1000, 0xc00, 0x1000);
	segment(&c, PT_DYNAMIC, PF_R, DYNAMIC, 0x1000 + DYNAMIC, 0x60, 8);
	c.at = DYNAMIC;
	word(&c, DT_SYMTAB), word(&c, 0x1000 + SYMBOLS);
	word(&c, DT_STRTAB), word(&c, 0x1000 + NAMES);
	word(&c, DT_STRSZ), word(&c, sizeof(names));
	word(&c, DT_GNU_HASH), word(&c, 0x1000 + HASH);
	word(&c, DT_NULL), word(&c, 0);
	c.at = HASH;
	word32(&c, 1), word32(&c, 1), word32(&c, 1), word32(&c, 6);
	word(&c, ~0ull);
	word32(&c, 1);
	word32(&c, hash_of("one") & ~1u), word32(&c, hash_of("zero") | 1);
	c.at = SYMBOLS;
	symbol(&c, 0, STT_NOTYPE, SHN_UNDEF, 0, 0);
	symbol(&c, 1, STT_OBJECT, 1, 0x1000 + VALUES, 4);
	symbol(&c, 5, STT_OBJECT, 2, 0x9000, 4);
	memcpy(im->bytes + NAMES, names, sizeof(names));
	put(im, VALUES, 77, 4);
	im->size = 0xc00;
	header(im, 2, 0);
}

TEST(exports_are_found_by_their_hashes)
{
	struct elf_exports exports;
	struct elf_file *file;
	uint64_t address;
	uint32_t value = 5;
	struct image im;
	int fd;

	forge_exports(&im);
	file = open_image(&im, &fd);
	assert_int_equal(elf_exports__init(&exports, file), 0);
	assert_int_equal(elf_exports__u32(&exports, "one", &value), 0);
	assert_int_equal(value, 77);
	assert_int_equal(elf_exports__u32(&exports, "zero", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(elf_exports__find(&exports, "two", &address), -ENOENT);
	assert_int_equal(elf_exports__find(&exports, "", &address), -ENOENT);
	close_image(file, fd);
}

/* Symbols with hashes alike, without an end: the search ends, and the file says that it was left. */
TEST(a_search_in_endless_exports_is_an_error)
{
	enum { MOVED = 0xbc0 };
	struct elf_exports exports;
	struct elf_file *file;
	uint64_t address;
	struct image im;
	int fd;

	forge_exports(&im);
	memcpy(im.bytes + MOVED, im.bytes + HASH, 36);
	put(&im, DYNAMIC + 56, 0x1000 + MOVED, 8);
	put(&im, MOVED + 32, hash_of("zero") & ~1u, 4);
	fd = make_file(im.bytes, im.size);
	assert_int_equal(ftruncate(fd, 1 << 16), 0);
	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(elf_exports__init(&exports, file), 0);
	assert_int_equal(elf_exports__find(&exports, "zero", &address), 0);
	assert_false(elf_file__left(file));
	assert_int_equal(elf_exports__find(&exports, "two", &address), -EFBIG);
	assert_true(elf_file__left(file));
	close_image(file, fd);
}

TEST(damaged_exports_cause_no_crash)
{
	for (size_t at = DYNAMIC; at < VALUES; at += 4) {
		static const uint32_t values[] = {0, 1, 0x7fffffff, 0xffffffff};

		for (size_t k = 0; k < 4; k++) {
			struct elf_exports exports;
			struct elf_file *file;
			uint32_t value;
			struct image im;
			int fd;

			forge_exports(&im);
			put(&im, at, values[k], 4);
			file = open_image(&im, &fd);
			if (!elf_exports__init(&exports, file))
				elf_exports__u32(&exports, "zero", &value);
			close_image(file, fd);
		}
	}
}

TEST(a_file_without_v8_constants_has_no_layout)
{
	struct v8_layout l;
	struct image im;
	int fd;
	struct elf_file *file;

	forge(&im, true, false);
	file = open_image(&im, &fd);
	assert_false(v8_layout__read(&l, file));
	assert_int_equal(l.verdict, V8_ABSENT);
	close_image(file, fd);
	forge_exports(&im);
	file = open_image(&im, &fd);
	assert_false(v8_layout__read(&l, file));
	assert_int_equal(l.verdict, V8_ABSENT);
	close_image(file, fd);
}
