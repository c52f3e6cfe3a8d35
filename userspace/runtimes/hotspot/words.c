/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/words.h"

#include <errno.h>

int hotspot_words__make(struct runtime_hotspot *w, const struct hotspot_code *code)
{
	const struct hotspot_layout *l = code->layout;
	const struct {
		enum hotspot_fact fact;
		uint16_t *to;
	} offsets[] = {
		{HOTSPOT_BLOB_NAME, &w->name},
		{HOTSPOT_BLOB_FRAME_SIZE, &w->frame_size},
		{HOTSPOT_BLOB_FRAME_COMPLETE, &w->frame_complete},
		{l->known[HOTSPOT_BLOB_CODE_OFFSET] ? HOTSPOT_BLOB_CODE_OFFSET
						    : HOTSPOT_BLOB_CODE_BEGIN,
		 &w->code},
		{HOTSPOT_COMPILE_ID, &w->compile_id},
		{HOTSPOT_METHOD_OF, &w->method},
		{HOTSPOT_CONST_METHOD, &w->const_method},
	};

	*w = (struct runtime_hotspot){.bytecode_start = code->bytecode_start,
				      .bytecode_end = code->bytecode_end,
				      .shift = code->shift,
				      .block_size = l->at[HOTSPOT_HEAP_BLOCK_SIZE],
				      .is_narrow = l->known[HOTSPOT_BLOB_CODE_OFFSET]};
	if (code->count > RUNTIME_HEAPS || l->at[HOTSPOT_HEAP_BLOCK_SIZE] > UINT8_MAX)
		return -E2BIG;
	for (unsigned int i = 0; i < code->count; i++) {
		w->heaps[i].low = code->heaps[i].low;
		w->heaps[i].high = code->heaps[i].high;
		w->heaps[i].map = code->heaps[i].map;
	}
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (l->at[offsets[i].fact] >= HOTSPOT_HEADER_MAX)
			return -E2BIG;
		*offsets[i].to = l->at[offsets[i].fact];
	}
	return 0;
}
