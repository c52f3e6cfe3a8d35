# SPDX-License-Identifier: BSD-2-Clause
#
# Fuzz targets. Part of the Makefile.

FUZZERS	      := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# What fuzz targets are linked with: all of the archive `read`, and of the other what parses without the kernel side
FUZZ_SOURCES  := $(READ_SOURCES) $(filter $(foreach d,agent live/proc unwind,userspace/$d/%),$(RECORD_SOURCES)) \
		 $(wildcard tests/models/*.c)
FUZZ_OBJECTS  := $(FUZZ_SOURCES:%.c=$(BUILD)/fuzz/%.o)

# -O2 pays after a minute of fuzzing. `make test-all` runs each target for seconds, and builds with -O0 in a third of the CPU
# time. Another level than that of the objects builds them again.
FUZZ_LEVEL    ?= -O2
FUZZ_BUILT    := $(BUILD)/fuzz/level

# Fuzz targets: clang's coverage and both sanitizers, in what they reach of the library as well. That
# one warning clang gives for initializers which gcc accepts, some of them in others' headers.
FUZZ_CFLAGS = $(ALL_CFLAGS) $(FUZZ_LEVEL) -gline-tables-only -Wno-missing-field-initializers \
	      -Wno-gnu-variable-sized-type-not-at-end -fsanitize=address,undefined -fno-sanitize-recover=all

ifneq ($(FUZZ_LEVEL),$(shell cat $(FUZZ_BUILT) 2>/dev/null))
.PHONY: $(FUZZ_BUILT)
endif
$(FUZZ_BUILT):
	$(Q)mkdir -p $(@D) && echo '$(FUZZ_LEVEL)' >$@

$(BUILD)/fuzz/userspace/%.o: userspace/%.c Makefile tests/fuzz/fuzz.mk $(FUZZ_BUILT) | $(BUILD)/.deps
	$(call say,FUZZ CC,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/tests/%.o: tests/%.c Makefile tests/fuzz/fuzz.mk $(FUZZ_BUILT) | $(BUILD)/.deps
	$(call say,FUZZ CC,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -Itests -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/library.a: $(FUZZ_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/library.a Makefile tests/fuzz/fuzz.mk
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -Itests -fsanitize=fuzzer -MMD -MP -MF $@.d -o $@ $< $(BUILD)/fuzz/library.a $(LDLIBS)

$(BUILD)/fuzz/seeds/.made: tests/fuzz/seeds.sh tests/fixtures/go/table.S $(wildcard tests/golden/recordings/*.sysprof)
	$(call say,SEEDS,$(@D))
	$(Q)CLANG='$(CLANG)' $< $(@D) && touch $@

.PHONY: fuzz fuzz-build

fuzz-build: $(FUZZERS) $(BUILD)/fuzz/seeds/.made

fuzz:
	$(Q)tools/install-deps.sh --check fuzz
	$(Q)+$(sub) fuzz-build
	$(Q)BUILD='$(BUILD)' FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(notdir $(FUZZERS))

-include $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:=.d)
