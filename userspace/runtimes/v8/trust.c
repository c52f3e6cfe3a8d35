/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/found.h"

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
static int check_script(struct v8_reader *r, uint64_t word, bool *is_sound)
{
	struct v8_object o;
	int err = v8_object__read(r, word, &o);

	if (!err && o.type == r->layout->type_script)
		*is_sound = true;
	else if (!err)
		err = check_map(r, v8_object__word(&o, 0), is_sound);
	return err == -EINVAL ? 0 : err;
}

static int look(struct v8_reader *r, uint64_t sfi, bool *is_sound)
{
	struct v8_object o;
	bool is_map;
	int err = v8_object__read(r, sfi, &o);

	if (!err && v8_object__moved_to(&o))
		err = v8_object__read(r, v8_object__moved_to(&o), &o);
	if (!err)
		err = check_map(r, v8_object__word(&o, 0), &is_map);
	if (err || !is_map || o.type != r->layout->type_sfi)
		return err == -EINVAL ? 0 : err;
	return check_script(r, v8_object__word(&o, r->layout->sfi_script), is_sound);
}

static enum v8_trust_state judge(const struct v8_trust *t)
{
	if (t->bad * 100 > V8_TRUST_CANDIDATES * (100 - V8_TRUST_PERCENT))
		return V8_REFUSED;
	return t->seen == V8_TRUST_CANDIDATES ? V8_TRUSTED : V8_TRUST_OPEN;
}

enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi)
{
	bool is_sound = false;
	int err;

	if (t->state != V8_TRUST_OPEN)
		return t->state;
	err = look(r, sfi, &is_sound);
	if (err && err != -ENODATA)
		return t->state;
	t->seen++;
	t->bad += err || !is_sound;
	t->state = judge(t);
	return t->state;
}
