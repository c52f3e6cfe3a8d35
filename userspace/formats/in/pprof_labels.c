/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/pprof_labels.h"

#define NUMBER_DIGITS_MAX 19 /* of a label's text; those of 64 bits */

/* ---- words, ours and those of others --------------------------------------------------------- */

static enum label_kind label_kind(const uint8_t *bytes, size_t size)
{
	static const struct label_key {
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
		{"comm", LABEL_COMM},
		{"cgroup", LABEL_CGROUP},
		{"gil", LABEL_GIL},
		{"context", LABEL_CONTEXT},
	};
	static const struct label_key names[] = {
#define X(field, label) {label, LABEL_NAME_##field},
		PROCESS_NAMES(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (pprof_is_word(bytes, size, keys[i].key))
			return keys[i].kind;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (pprof_is_word(bytes, size, names[i].key))
			return names[i].kind;
	return LABEL_OTHER;
}

/* "held", …: as the exporter writes it. */
static enum gil_state gil_state_of(const uint8_t *bytes, size_t size)
{
	for (int state = GIL_UNKNOWN + 1; state < GIL_STATE_COUNT; state++)
		if (pprof_is_word(bytes, size, gil_state_name(state)))
			return state;
	return GIL_UNKNOWN;
}

static enum sample_context sample_context_of(const uint8_t *bytes, size_t size)
{
	for (int context = CONTEXT_NONE + 1; context < CONTEXT_COUNT; context++)
		if (pprof_is_word(bytes, size, sample_context_name(context)))
			return context;
	return CONTEXT_NONE;
}

/* Few strings are keys, and those of many labels. */
static enum label_kind kind_of_key(struct pprof *p, int64_t key)
{
	struct text *text = &p->strings.data[key];

	if (text->label == LABEL_UNREAD)
		text->label = label_kind(text->bytes, text->size);
	return text->label;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* A number, or digits as a string. */
static uint32_t label_number(const struct pprof *p, const struct pprof_label *l)
{
	const struct text *text = pprof_string_of(p, l->text);
	uint64_t number = 0;

	if (!l->text)
		return l->number > 0 && l->number <= UINT32_MAX ? (uint32_t)l->number : 0;
	if (!text || text->size > NUMBER_DIGITS_MAX)
		return 0;
	for (size_t i = 0; i < text->size; i++) {
		uint8_t digit = text->bytes[i];

		if (digit < '0' || digit > '9')
			return 0;
		number = number * 10 + digit - '0';
	}
	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static enum gil_state label_gil(const struct pprof *p, const struct pprof_label *l)
{
	return (uint64_t)l->text < p->strings.count
		       ? gil_state_of(p->strings.data[l->text].bytes, p->strings.data[l->text].size)
		       : GIL_UNKNOWN;
}

static enum sample_context label_context(const struct pprof *p, const struct pprof_label *l)
{
	return (uint64_t)l->text < p->strings.count
		       ? sample_context_of(p->strings.data[l->text].bytes,
					   p->strings.data[l->text].size)
		       : CONTEXT_NONE;
}

static int take_label(struct pprof *p, const struct pprof_label *l, struct pprof_labels *to)
{
	bool known = l->key > 0 && (uint64_t)l->key < p->strings.count && l->text >= 0;

	switch (known ? kind_of_key(p, l->key) : LABEL_OTHER) {
	case LABEL_PID:
		to->owner.pid = label_number(p, l);
		return 0;
	case LABEL_TID:
		to->owner.tid = label_number(p, l);
		return 0;
	case LABEL_THREAD:
		return pprof__intern(p, l->text, &to->owner.thread);
	case LABEL_PROCESS:
		return pprof__intern(p, l->text, &to->owner.process);
#define X(field, label)                                                                            \
	case LABEL_NAME_##field:                                                                   \
		return pprof__intern(p, l->text, &to->owner.names.field);
		PROCESS_NAMES(X)
#undef X
	case LABEL_COMM:
		return pprof__intern(p, l->text, &to->comm);
	case LABEL_CGROUP:
		return pprof__intern(p, l->text, &to->owner.cgroup);
	case LABEL_GIL:
		to->gil = label_gil(p, l);
		return 0;
	case LABEL_CONTEXT:
		to->context = label_context(p, l);
		return 0;
	case LABEL_UNREAD:
	case LABEL_OTHER:
		return 0;
	}
	return 0;
}

/*
 * In files of other programs labels such as "user" are of a request, and in those of the agent a
 * service may have several pods: there only the service is the process's.
 */
static void settle_names(const struct pprof *p, struct sample_owner *owner)
{
	const struct profile_names service = {.service = owner->names.service};
	bool is_service = !owner->process.v;

	if (is_service)
		owner->process = service.service;
	if (!p->ours || !owner->pid)
		owner->names = is_service ? service : (struct profile_names){};
}

int pprof_labels__read(struct pprof *p, const struct wire *sample, struct pprof_labels *to)
{
	struct wire w = wire_inside(sample);
	struct pprof_label label;
	int err = 0;

	*to = (struct pprof_labels){.gil = GIL_UNKNOWN};
	while (!err && wire_next(&w) > 0)
		if (w.number == PPROF_LABEL)
			err = pprof__read_numbers(p, &w, LABEL_TYPES, &label, sizeof(label))
				      ?: take_label(p, &label, to);
	settle_names(p, &to->owner);
	return err;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* The program is the first mapping. */
static struct string_id program_name(const struct pprof *p)
{
	const struct profile_dso *dso = NULL;

	if (p->mappings.count && p->mappings.data[0].kind == DSO_FILE)
		dso = profile_builder__get_dso(p->b, p->mappings.data[0].dso);
	return dso && dso->name.v ? dso->name : profile_builder__string(p->b, p->request->name);
}

/* Code without a mapping needs a process before the samples are read. */
static int note_any_owner(struct pprof *p, const struct wire *w, const void *message)
{
	struct pprof_labels labels = {};

	(void)message;
	return (w ? pprof_labels__read(p, w, &labels) : 0)
		       ?: owners__process(&p->owners, &labels.owner, &p->any);
}

int pprof_labels__find_any_process(struct pprof *p)
{
	static const struct wanted_field sample = {PPROF_SAMPLE, SAMPLE_TYPES, note_any_owner};

	p->owners.program = program_name(p);
	return p->first.bytes ? pprof__take_field(p, &p->first, &sample)
			      : note_any_owner(p, NULL, NULL);
}
