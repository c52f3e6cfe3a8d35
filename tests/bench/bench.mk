# SPDX-License-Identifier: BSD-2-Clause
#
# What `make bench` measures with. Part of the Makefile.

BENCHES       := $(patsubst %.c,$(BUILD)/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
# Those that measure parts of the library
LIB_BENCHES   := $(patsubst %.c,$(BUILD)/%,$(shell grep -lE '^\#include "[a-z]+/' tests/bench/*.c))

# sysprof with programs that count what they call, for `make bench`: see tests/bench/counted_calls.bpf.h
$(BUILD)/counted/gen/counted-helpers.h: Makefile tests/bench/bench.mk | $(BUILD)/.deps
	$(Q)mkdir -p $(@D) && echo '#include <linux/bpf.h>' | $(CLANG) $(BPF_CFLAGS) -E -P -include linux/types.h \
		-include bpf/bpf_helper_defs.h - | sed -n \
		's/^static .*(\*\( const \)\{0,1\}\(bpf_[a-z0-9_]*\))(.*/#define \2(...) (counted.tick_helpers++, \2(__VA_ARGS__))/p' >$@

$(BUILD)/counted/gen/sampler.skel.h: bpf/sampler.bpf.c tests/bench/counted_calls.bpf.h tests/bench/count-calls.awk \
		$(BUILD)/counted/gen/counted-helpers.h \
		$(NATIVE)/gen/sampler.skel.h
	$(call say,COUNTED,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -I$(@D) -include tests/bench/counted_calls.bpf.h -S -emit-llvm -o - $< | \
		awk -f tests/bench/count-calls.awk >$(@D)/sampler.ll && \
		$(CLANG) $(BPF_CFLAGS) -Wno-unused-command-line-argument -Xclang -disable-llvm-passes -c -o $(@D)/sampler.o $(@D)/sampler.ll && \
		$(BPFTOOL) gen object $(@D)/sampler.linked $(@D)/sampler.o && \
		$(BPFTOOL) gen skeleton $(@D)/sampler.linked name sampler_bpf >$@

$(BUILD)/counted/live/capture/%.o: userspace/live/capture/%.c $(BUILD)/counted/gen/sampler.skel.h $(LIBRARIES)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -I$(BUILD)/counted/gen $(ALL_CFLAGS) -c -o $@ $<

$(COUNTED): $(patsubst userspace/%.c,$(BUILD)/counted/%.o,$(wildcard userspace/live/capture/*.c)) $(CLI_OBJECTS) $(LIBRARIES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIB_BENCHES): $(BUILD)/tests/bench/%: tests/bench/%.c $(LIBRARIES) Makefile tests/bench/bench.mk
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(LIBRARIES) $(LDLIBS)

# Those that have a program of their own for the kernel.
OWN_PROGRAMS  := $(patsubst tests/bench/%.bpf.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.bpf.c))

$(BUILD)/tests/bench/%.bpf.o: tests/bench/%.bpf.c Makefile tests/bench/bench.mk | $(BUILD)/.deps
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/bench/%.skel.h: $(BUILD)/tests/bench/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

$(OWN_PROGRAMS): $(BUILD)/tests/bench/%: tests/bench/%.c $(BUILD)/tests/bench/%.skel.h Makefile tests/bench/bench.mk
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -I$(BUILD)/tests/bench -MMD -MP -MF $@.d -o $@ $< $(LDLIBS)

$(BUILD)/tests/bench/%: tests/bench/%.c Makefile tests/bench/bench.mk | $(BUILD)/.deps
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl

.PHONY: bench

# Runtimes to be measured, fetched by the caller like those above.
build/programs/stamp: tests/bench/programs/fetch.sh
	$(call say,PROGRAMS,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) && touch $@

bench: all $(COUNTED) $(FIXTURES) $(BENCHES) $(BUILD)/tests/unit/test_compare $(BUILD)/tests/e2e/push_windows $(BUILD)/tests/e2e/index_oracle build/programs/stamp
	$(Q)tools/install-deps.sh --check bench || echo "going on without"
	$(Q)tests/bench/run.sh $(BUILD) $(SECTIONS)

-include $(BENCHES:=.d)
