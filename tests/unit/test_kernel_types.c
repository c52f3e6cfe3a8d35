/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_types: what libbpf reads of the selected types is what it reads of all. */
#include <bpf/btf.h>
#include <sysprof/bpf_shared.h>

#include "unit.h"
#include "live/capture/kernel_types.h"

#include "visit.skel.h"

static const char *name_at(const struct btf *btf, const struct btf_type *type)
{
	return btf__name_by_offset(btf, type->name_off);
}

/* Members have the names, places and sizes that they have in the kernel. */
static void check_members(const struct btf *all, const struct btf_type *expected,
			  const struct btf *selected, const struct btf_type *type)
{
	const struct btf_member *m = btf_members(type), *e = btf_members(expected);

	assert_int_equal(type->size, expected->size);
	assert_int_equal(type->info, expected->info);
	for (size_t i = 0; i < btf_vlen(type); i++) {
		assert_string_equal(btf__name_by_offset(selected, m[i].name_off),
				    btf__name_by_offset(all, e[i].name_off));
		assert_int_equal(m[i].offset, e[i].offset);
		assert_int_equal(btf__resolve_size(selected, m[i].type),
				 btf__resolve_size(all, e[i].type));
	}
}

static void check_values(const struct btf *all, const struct btf_type *expected,
			 const struct btf *selected, const struct btf_type *type)
{
	const struct btf_enum *v = btf_enum(type), *e = btf_enum(expected);

	assert_int_equal(btf_vlen(type), btf_vlen(expected));
	for (size_t i = 0; i < btf_vlen(type); i++) {
		assert_string_equal(btf__name_by_offset(selected, v[i].name_off),
				    btf__name_by_offset(all, e[i].name_off));
		assert_int_equal(v[i].val, e[i].val);
	}
}

/* Each type that the program names is there, if the kernel has it. Returns how many are. */
static size_t check_types(const struct btf *programs, const struct btf *all,
			  const struct btf *selected)
{
	size_t checked = 0;

	for (__u32 i = 1; i < btf__type_cnt(programs); i++) {
		const struct btf_type *own = btf__type_by_id(programs, i);
		const char *name = name_at(programs, own);
		__u32 kind = btf_kind(own);
		__s32 in_all, in_selected;

		if (!*name || (kind != BTF_KIND_STRUCT && kind != BTF_KIND_ENUM))
			continue;
		in_all = btf__find_by_name_kind(all, name, kind);
		in_selected = btf__find_by_name_kind(selected, name, kind);
		assert_true((in_all > 0) == (in_selected > 0));
		if (in_all <= 0)
			continue;
		checked++;
		if (kind == BTF_KIND_STRUCT)
			check_members(all, btf__type_by_id(all, in_all), selected,
				      btf__type_by_id(selected, in_selected));
		else
			check_values(all, btf__type_by_id(all, in_all), selected,
				     btf__type_by_id(selected, in_selected));
	}
	return checked;
}

TEST(selected_types_are_the_kernels)
{
	static const char *const functions[] = {"schedule", "schedule_nothing"};
	struct kernel_types *types = kernel_types__read();
	struct visit_bpf *visit = visit_bpf__open();
	struct btf *all = btf__load_vmlinux_btf(), *selected;
	const struct btf *programs;

	if (!all)
		skip();
	assert_non_null(types);
	assert_non_null(visit);
	programs = bpf_object__btf(visit->obj);
	assert_int_equal(kernel_types__select(types, programs), 0);
	selected = btf__parse(kernel_types__path(types), NULL);
	assert_non_null(selected);
	assert_true(check_types(programs, all, selected) > 20);
	assert_true(btf__type_cnt(selected) < btf__type_cnt(all) / 10);
	assert_int_equal(btf__find_by_name_kind(selected, "task_struct", BTF_KIND_STRUCT),
			 btf__find_by_name_kind(all, "task_struct", BTF_KIND_STRUCT));
	assert_true(kernel_types__have_functions(types, functions, 1));
	assert_false(kernel_types__have_functions(types, functions, 2));
	/* a flavor is another program's view of the same type */
	assert_true(btf__find_by_name_kind(programs, "io_kiocb___task", BTF_KIND_STRUCT) > 0);
	assert_true(btf__find_by_name_kind(selected, "io_kiocb___task", BTF_KIND_STRUCT) < 0);
	btf__free(selected);
	btf__free(all);
	visit_bpf__destroy(visit);
	kernel_types__free(types);
}

TEST(without_types_libbpf_looks_itself)
{
	assert_null(kernel_types__path(NULL));
	assert_int_equal(kernel_types__select(NULL, NULL), 0);
	kernel_types__free(NULL);
}
