/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What services are named by: environments, command lines, OpenTelemetry contexts, resource attributes, control groups,
 * files of containers. The first byte says which; what comes out has ends, and is fit to be a label where it is said to be.
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "live/proc/command_line.h"
#include "live/proc/environment.h"
#include "live/proc/fact_reader.h"
#include "live/proc/otel_context.h"
#include "services/cgroup_path.h"
#include "services/containers.h"
#include "services/label_set.h"

static const char *const programs[] = {"python3", "node", "java", "bash", "perl", "php", "dotnet"};

static void check_facts(const struct fact_text *facts)
{
	const char *at = facts->text, *end = at + facts->size;

	MUST(facts->size <= facts->room && facts->count <= facts->most);
	for (unsigned int i = 0; i < 2 * facts->count; i++) {
		const char *zero = memchr(at, '\0', end - at);

		MUST(zero && (i % 2 || zero > at));
		at = zero + 1;
	}
	MUST(at == end);
}

static void check_label(const char *label)
{
	size_t length = strlen(label);

	MUST(length > 0 && length <= LABEL_VALUE_MAX);
	for (size_t i = 0; i < length;) {
		size_t size = utf8_sequence(label + i, length - i);

		MUST(size && (unsigned char)label[i] >= 0x20 && label[i] != 0x7f);
		i += size;
	}
}

static void check_place(const struct cgroup_place *p)
{
	MUST(strnlen(p->container, sizeof(p->container)) < sizeof(p->container));
	MUST(strnlen(p->container_name, sizeof(p->container_name)) < sizeof(p->container_name));
	MUST(strnlen(p->pod_uid, sizeof(p->pod_uid)) < sizeof(p->pod_uid));
	MUST(strnlen(p->unit, sizeof(p->unit)) < sizeof(p->unit));
	MUST(strnlen(p->instance, sizeof(p->instance)) < sizeof(p->instance));
	MUST(strnlen(p->unit_service, sizeof(p->unit_service)) < sizeof(p->unit_service));
}

static void read_facts(const uint8_t *data, size_t size, bool is_context)
{
	static const char names[] = "A\0DD_SERVICE\0OTEL_RESOURCE_ATTRIBUTES";
	static char space[512];
	struct fact_text facts = {.text = space, .room = sizeof(space), .most = 8};

	if (is_context)
		otel_context__decode(data, size, &facts);
	else
		environment__pick((const char *)data, size, names, sizeof(names), &facts);
	check_facts(&facts);
}

static void read_text(const char *text, unsigned int kind)
{
	char value[LABEL_VALUE_MAX + 1], small[7];
	struct cgroup_place place;

	if (kind == 0) {
		cgroup_place__parse(&place, text);
		check_place(&place);
		return;
	}
	if (label_value_set(value, sizeof(value), text))
		check_label(value);
	if (label_value_set(small, sizeof(small), text))
		check_label(small);
	if (resource_attribute(text, "service.name", value, sizeof(value)))
		check_label(value);
}

static void read_container(const char *json, size_t size)
{
	struct container_names texts = {};

	(void)container_config__parse(json, size, &texts);
	MUST(!texts.pod || strlen(texts.pod) <= CONTAINER_TEXT_MAX);
	MUST(!texts.name || strlen(texts.name) <= CONTAINER_TEXT_MAX);
	container_names__fini(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char subject[COMMAND_SUBJECT_SIZE];
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 6) {
	case 0:
	case 1:
		read_facts(data + 1, size - 1, data[0] % 6);
		break;
	case 2:
		for (size_t i = 0; i < COUNT(programs); i++)
			if (command_line__subject(programs[i], (const char *)data + 1, size - 1,
						  subject))
				MUST(strnlen(subject, sizeof(subject)) < sizeof(subject));
		break;
	case 3:
	case 4:
		read_text(text, data[0] % 6 - 3);
		break;
	default:
		read_container((const char *)data + 1, size - 1);
	}
	free(text);
	return 0;
}
