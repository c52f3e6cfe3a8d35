/* SPDX-License-Identifier: BSD-2-Clause */
/* Libraries and categories of a Firefox profile (firefox.h). */
#include "import/firefox.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define AMBIGUOUS " (or another function)" /* our own */

static enum dso_kind kind_of_lib(const char *name)
{
	if (!strncmp(name, "[kernel", 7))
		return DSO_KERNEL;
	return strcmp(name, "[vdso]") ? DSO_FILE : DSO_VDSO;
}

static int add_lib(struct firefox_common *common, struct json_value value)
{
	_cleanup_json_ struct json_tree *tree = NULL;
	int err = json_tree__parse(common->text, value, &tree);
	const char *name, *path;
	struct firefox_lib lib;
	struct profile_dso dso;

	if (err)
		return err;
	name = json_tree__string(tree, "name", "");
	path = json_tree__string(tree, "path", "");
	lib.kind = kind_of_lib(name);
	dso = (struct profile_dso){
		.kind = lib.kind,
		.path = profile_builder__string(common->b, *path ? path : name),
		.name = profile_builder__string(common->b, *name ? name : path),
		.is_library = strstr(name, ".so") != NULL,
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
	};
	frames__set_build_id(&dso, json_tree__string(tree, "codeId", ""));
	lib.dso = profile_builder__dso(common->b, &dso);
	return lib.dso.v ? vec_push(&common->libs, lib) : -ENOMEM;
}

int firefox_common__libs(struct firefox_common *common, struct json_value libs)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, common->text, libs.at, JSON_ARRAY);

	common->libs.count = 0;
	while (!more && (more = json_walk__next(&walk)) > 0)
		more = add_lib(common, walk.value);
	return more;
}

/* Ours, samply's and Firefox's own. */
static const struct {
	const char *name;
	enum profile_category category;
} category_names[] = {
	{"User", CATEGORY_USER},    {"Kernel", CATEGORY_KERNEL}, {"Libraries", CATEGORY_LIBRARY},
	{"JIT", CATEGORY_JIT},	    {"Native", CATEGORY_USER},	 {"JavaScript", CATEGORY_JIT},
	{"Regular", CATEGORY_USER},
};

static struct firefox_subcategory subcategory_of(const char *name)
{
	struct firefox_subcategory found = {};

	for (unsigned int tier = 0; tier < CODE_TIER_COUNT; tier++) {
		const char *text = tier ? code_tier_text(tier) : "Other";
		size_t size = strlen(text);

		if (strncmp(name, text, size))
			continue;
		if (!name[size])
			return (struct firefox_subcategory){.tier = tier};
		if (!strcmp(name + size, AMBIGUOUS))
			return (struct firefox_subcategory){.tier = tier, .ambiguous = true};
	}
	return found;
}

static int add_subcategories(struct firefox_common *common, struct json_value value,
			     struct firefox_category *category)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, common->text, value.at, JSON_ARRAY);

	category->first_subcategory = (uint32_t)common->subcategories.count;
	while (!more && (more = json_walk__next(&walk)) > 0) {
		_cleanup_free_ char *name = NULL;

		more = json_string_copy(common->text, walk.value, &name);
		if (!more)
			more = vec_push(&common->subcategories, subcategory_of(name));
	}
	category->subcategory_count = (uint32_t)common->subcategories.count -
				      category->first_subcategory;
	return more;
}

static int add_category(struct firefox_common *common, struct json_value value)
{
	struct firefox_category category = {};
	struct json_value name, subcategories;
	const struct json_member wanted[] = {{"name", &name}, {"subcategories", &subcategories}};
	_cleanup_free_ char *text = NULL;
	int err = json_members(common->text, value, wanted, 2)
			  ?: json_string_copy(common->text, name, &text);

	if (err)
		return err;
	/* the waits of record --wall are no CPU samples, either */
	category.is_idle = !strcmp(text, "Idle") || !strncmp(text, "Waiting: ", 9);
	for (size_t i = 0; i < sizeof(category_names) / sizeof(*category_names); i++)
		if (!strcmp(text, category_names[i].name))
			category.category = category_names[i].category;
	if (subcategories.at)
		err = add_subcategories(common, subcategories, &category);
	return err ? err : vec_push(&common->categories, category);
}

int firefox_common__categories(struct firefox_common *common, struct json_value categories)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, common->text, categories.at, JSON_ARRAY);

	while (!more && (more = json_walk__next(&walk)) > 0)
		more = add_category(common, walk.value);
	return more;
}

void firefox_common__fini(struct firefox_common *common)
{
	frames__fini(&common->frames);
	vec_free(&common->categories);
	vec_free(&common->subcategories);
	vec_free(&common->libs);
}
