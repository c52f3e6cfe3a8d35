/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/trust.h"

#include <errno.h>
#include <stdbool.h>

#include "runtimes/v8/heap.h"

/* A map's own map is the map of all maps, which is its own. */
static int check_map(struct v8_reader *r, uint64_t map, bool *is_one)
{
	struct v8_object o, meta;
	int err = v8_object__read(r, map, &o);

	*is_one = false;
	if (!err)
		err = v8_object__read(r, v8_object__word(&o, 0), &meta);
	if (err)
		return err == -EINVAL ? 0 : err;
	*is_one = o.type == r->layout->type_map && meta.type == r->layout->type_map &&
		  v8_object__word(&meta, 0) == meta.tagged;
	return 0;
}

/* A script, one behind a DebugInfo, or undefined: an object in any case. */
static int check_script(struct v8_reader *r, uint64_t word, enum v8_finding *finding)
{
	struct v8_object o;
	bool is_one = false;
	int err = v8_object__read(r, word, &o);

	if (!err && o.type == r->layout->type_script)
		is_one = true;
	else if (!err)
		err = check_map(r, v8_object__word(&o, 0), &is_one);
	if (err && err != -EINVAL)
		return err;
	*finding = is_one ? V8_SOUND : V8_NO_SCRIPT;
	return 0;
}

static int look(struct v8_reader *r, uint64_t sfi, enum v8_finding *finding)
{
	struct v8_object o;
	bool is_map;
	int err = v8_object__read(r, sfi, &o);

	if (!err && v8_object__moved_to(&o))
		err = v8_object__read(r, v8_object__moved_to(&o), &o);
	if (err == -EINVAL) {
		*finding = V8_NO_MAP;
		return 0;
	}
	if (err)
		return err;
	err = check_map(r, v8_object__word(&o, 0), &is_map);
	if (err && err != -ENODATA)
		return err;
	*finding = err || !is_map ? V8_NO_MAP : V8_NO_SFI;
	if (*finding == V8_NO_MAP || o.type != r->layout->type_sfi)
		return 0;
	return check_script(r, v8_object__word(&o, r->layout->sfi_script), finding);
}

static enum v8_trust_state judge(const struct v8_trust *t)
{
	const uint32_t bad = t->seen - t->found[V8_SOUND];

	if (bad * 100 > V8_TRUST_CANDIDATES * (100 - V8_TRUST_PERCENT))
		return V8_REFUSED;
	return t->seen == V8_TRUST_CANDIDATES ? V8_TRUSTED : V8_TRUST_OPEN;
}

enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi)
{
	enum v8_finding finding = V8_SOUND;
	int err;

	if (t->state != V8_TRUST_OPEN)
		return t->state;
	err = look(r, sfi, &finding);
	if (err && err != -ENODATA)
		return t->state;
	if (err)
		finding = V8_UNREADABLE;
	t->found[finding]++;
	t->seen++;
	t->state = judge(t);
	return t->state;
}

const char *v8_trust__reason(const struct v8_trust *t)
{
#define V8_FINDING_TEXT_(name, text) [name] = (text),
	static const char *const texts[] = {V8_FINDINGS(V8_FINDING_TEXT_)};
#undef V8_FINDING_TEXT_
	enum v8_finding most = V8_UNREADABLE;

	if (t->state != V8_REFUSED)
		return "";
	for (enum v8_finding i = V8_UNREADABLE; i < V8_FINDING_COUNT; i++) {
		if (t->found[i] > t->found[most])
			most = i;
	}
	return texts[most];
}
