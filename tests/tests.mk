# SPDX-License-Identifier: BSD-2-Clause
#
# How tests and the programs that they record are built, and what `make` runs of them. A new file is found by its
# directory and its name. Part of the Makefile.

# protobuf-c is the tests' own reading of pprof files
TEST_LIBS := $(shell pkg-config --libs cmocka libprotobuf-c 2>/dev/null)

# Programs to be profiled: what their stacks look like is part of the tests, so CFLAGS and the
# sanitizers do not reach them.
FIXTURE_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -O2 -g -fno-omit-frame-pointer \
		 -fno-optimize-sibling-calls -Iinclude

PROTOS	      := $(patsubst proto/%.proto,gen/%.pb-c,$(wildcard proto/*.proto))
UNIT_TESTS    := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
# What the walks in the kernel do, written down a second time for programs that compare; a profile as text, look-ups in a
# table
MODELS	      := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/models/*.c))
TEST_LIB      := $(BUILD)/tests/libmodels.a $(LIBRARIES)
GOLDEN_TESTS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/golden/*.c))
FIXTURES      := $(patsubst %.c,$(BUILD)/%,$(filter-out tests/fixtures/lib%,$(wildcard tests/fixtures/*.c))) \
		 $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/fixtures/lib*.c)) \
		 $(BUILD)/tests/fixtures/chain-no-fp $(BUILD)/tests/fixtures/deep-no-fp
E2E_TOOLS     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/e2e/*.c))
# That of the tests that are repeated with the sanitizers
SANITIZED_TOOLS := $(BUILD)/tests/e2e/push_windows $(BUILD)/tests/e2e/read_profiles

$(NATIVE)/gen/%.pb-c.h $(NATIVE)/gen/%.pb-c.c &: proto/%.proto | $(BUILD)/.deps
	$(call say,PROTO,$<)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=proto --c_out=$(@D) $<

$(BUILD)/gen/%.pb-c.o: $(NATIVE)/gen/%.pb-c.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c -o $@ $<

$(BUILD)/tests/models/%.o: tests/models/%.c Makefile tests/tests.mk | $(BUILD)/.deps
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/libmodels.a: $(MODELS) $(PROTOS:%=$(BUILD)/%.o)
	$(Q)rm -f $@ && ar rcs $@ $^

# Tests: a cmocka program each against the library. After a change of the library they are only linked again. Their own
# code is compiled without optimization, in a third of the time.
$(BUILD)/tests/unit/%.o: tests/unit/%.c Makefile tests/tests.mk | $(BUILD)/.deps $(SKELETONS) $(PROTOS:%=$(NATIVE)/%.h)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -O0 -Wno-format-truncation -Wno-unused-parameter -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/test_map: private LDLIBS += -Wl,--wrap=malloc,--wrap=realloc

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(TEST_LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(TEST_LIB) $(LDLIBS) $(TEST_LIBS)

$(BUILD)/tests/e2e/%: tests/e2e/%.c $(TEST_LIB) Makefile tests/tests.mk
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d -o $@ $< $(TEST_LIB) $(LDLIBS)

# With all of the archive `read` and nothing else: that this links proves that no file of it depends on `record`, libbpf
# or what only the agent needs.
READ_LIBS = $(shell pkg-config --libs $(READ_PKGS) 2>/dev/null) -liberty -ldl -lpthread -lm
$(BUILD)/tests/golden/%: tests/golden/%.c $(BUILD)/tests/libmodels.a $(BUILD)/libsysprof-read.a Makefile tests/tests.mk
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d -o $@ $< $(BUILD)/tests/libmodels.a \
		-Wl,--whole-archive $(BUILD)/libsysprof-read.a -Wl,--no-whole-archive $(READ_LIBS)

$(BUILD)/tests/fixtures/lib%.so: tests/fixtures/lib%.c Makefile tests/tests.mk | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -fPIC -shared -o $@ $<

# As most of production code is: what main calls has no frame pointer.
$(BUILD)/tests/fixtures/%-no-fp: tests/fixtures/%.c Makefile tests/tests.mk | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -fomit-frame-pointer -MMD -MP -MF $@.d -o $@ $< -lpthread

# Those of vmtest, which has its own tools.
$(BUILD)/tests/fixtures/%-lld: tests/fixtures/%.c Makefile tests/tests.mk | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -fomit-frame-pointer -fuse-ld=lld -MMD -MP -MF $@.d -o $@ $< -lpthread

$(BUILD)/tests/fixtures/%-go: tests/fixtures/go/%.go Makefile tests/tests.mk
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && CGO_ENABLED=0 GOFLAGS= GOCACHE=$(abspath $(BUILD)/go-cache) go build -o $@ $<

$(BUILD)/tests/fixtures/%: tests/fixtures/%.c Makefile tests/tests.mk | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl

.PHONY: quick-build tests-build test test-all test-servers test-tools quick-tests unit golden golden-update e2e sanitize vmtest \
	distros soak stalled

# What tests compare with, made or fetched by the caller: below. One that compiles comes first, beside those that wait for a network.
FETCHED	:= build/oracle/programs build/consumers/stamp build/producers/stamp build/libdw/stamp build/runtimes/stamp build/go-cache/stamp

# Of all tests only what `make test` runs.
quick-build: all $(UNIT_TESTS) $(GOLDEN_TESTS) $(FIXTURES) $(BUILD)/tests/e2e/read_profiles $(BUILD)/tests/e2e/perf_samples

tests-build: quick-build $(if $(SANITIZE),$(SANITIZED_TOOLS),$(E2E_TOOLS) $(COUNTED) $(BUILD)/tests/bench/bpf_maps $(BUILD)/tests/bench/softirq_ticks) $(FETCHED)

# The viewers that judge what is written. Fetched here, by the caller, so that nothing fetches them as
# root; without a network the tests that want them say so.
build/consumers/stamp: tests/e2e/consumers/package.json
	$(call say,NPM,$(@D))
	-$(Q)tests/e2e/consumers/install.sh $(@D) >/dev/null

# Profilers whose files are read.
build/producers/stamp: tests/e2e/producers/install.sh
	$(call say,PROFILERS,$(@D))
	-$(Q)$< $(@D) >/dev/null

# Newer than the system's, where that does not know .dwp files.
build/libdw/stamp: tests/e2e/libdw/fetch.sh
	$(call say,LIBDW,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) >/dev/null && touch $@

# Runtimes with JIT code whose versions report more about it.
build/runtimes/stamp: tests/e2e/runtimes/fetch.sh
	$(call say,RUNTIMES,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) >/dev/null && touch $@

# Newer versions of Go compile their pprof, in a minute of CPU time: once for all tests.
build/go-cache/stamp:
	$(call say,GO,$(@D))
	$(Q)mkdir -p $(@D)
	-$(Q)GOCACHE=$(abspath $(@D)) GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 \
		go build -buildvcs=false -o $(abspath $(@D))/pprof cmd/pprof >/dev/null 2>&1
	$(Q)touch $@

# Real backends of the agent, and what judges its dashboards. Not for `make test`: they take minutes, and a network.
SERVERS := build/servers/otelcol-prof build/servers/pyroscope build/servers/schema
build/servers/otelcol-prof: WHAT := collector
build/servers/pyroscope:    WHAT := pyroscope
build/servers/schema:	    WHAT := schema
$(SERVERS): tests/e2e/backends/fetch.sh tests/e2e/backends/schema.json
	$(call say,SERVER,$@)
	$(Q)mkdir -p $(@D) && $< $(WHAT) $(@D) >$(@D)/$(WHAT).log 2>&1 || { tail -n 20 $(@D)/$(WHAT).log; exit 1; }
	$(Q)touch $@

# Profilers of crates, whose files are read. Not for `make test-all`: they take minutes of CPU time.
TOOLS := build/profilers/samply build/profilers/rbspy build/profilers/pprof-rs
$(TOOLS): tests/e2e/producers/build.sh tests/e2e/producers/profiled.rs
	$(call say,PROFILER,$@)
	$(Q)mkdir -p $(@D) && $< $(@F) $(@D) >$@.log 2>&1 || { tail -n 20 $@.log; exit 1; }
	$(Q)touch $@

# Programs whose inline chains are compared with another symbolizer's; also fetched and built by the
# caller. What cannot be had is listed, and said by the test.
build/oracle/programs: tests/e2e/oracle/build.sh $(wildcard tests/fixtures/dwarf/*)
	$(call say,ORACLE,$(@D))
	$(Q)$< $(@D)

# What `make test` proves, and what `make test-all` adds to it. tests/run.py has the suites.
CHECKS		:= layers house format runner build:unit build:golden
SANITIZED_SUITES := build-asan:unit build-asan:golden build-asan:sanitized build-asan:replay
# Short ones at the end: no lane waits for long.
ALL_SUITES	:= $(CHECKS) build:e2e build:distros build:long $(SANITIZED_SUITES) build:fuzz

# Installing and building are separate makes: what the first puts there, the second has to look for.
# `make test test-all` runs nothing twice.
test:
ifeq ($(filter test-all,$(MAKECMDGOALS)),)
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) quick-build
	$(Q)tests/run.py $(CHECKS) build:quick
endif

test-all:
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) FUZZ_LEVEL=-O0 tests-build fuzz-build
	$(Q)+$(sub) SANITIZE=1 tests-build
	$(Q)tests/run.py $(ALL_SUITES)

sanitize:
	$(Q)+$(sub) SANITIZE=1 tests-build
	$(Q)tests/run.py $(filter-out $(if $(wildcard build/tests/recordings/made),,%:replay),$(SANITIZED_SUITES))

# Built at once, so that both may be made with -j.
quick-tests:
	$(Q)tools/install-deps.sh unit
	$(Q)+$(sub) $(BUILD)/sysprof $(if $(filter unit,$(MAKECMDGOALS)),$(UNIT_TESTS)) \
		$(if $(filter golden%,$(MAKECMDGOALS)),$(GOLDEN_TESTS))

unit: quick-tests
	$(Q)tests/run.py $(BUILD):unit

golden: quick-tests
	$(Q)tests/run.py $(BUILD):golden

golden-update: quick-tests
	$(Q)GOLDEN_UPDATE=1 tests/run.py $(BUILD):golden

e2e: all $(FIXTURES) $(E2E_TOOLS) $(FETCHED)
	$(Q)tests/run.py $(BUILD):e2e

test-servers:
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) all $(BUILD)/tests/fixtures/chain $(BUILD)/tests/e2e/agent_formats $(SERVERS)
	$(Q)tests/run.py $(BUILD):servers

test-tools:
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) all $(BUILD)/tests/fixtures/inlined $(BUILD)/tests/fixtures/libinlined.so build/go-cache/stamp $(TOOLS)
	$(Q)tests/run.py $(BUILD):tools

vmtest: all
	$(Q)tools/install-deps.sh --check vmtest
	$(Q)+$(sub) $(addprefix $(BUILD)/tests/fixtures/,chain-no-fp chain-lld chain-go waits packets completions guest exits_leader) $(BUILD)/tests/unit/test_wall \
		$(BUILD)/tests/bench/softirq_ticks
	$(Q)vmtest/run.sh $(BUILD) $(KERNELS)

# As root, through sudo where one is not.
distros:
	$(Q)tools/install-deps.sh distros
	$(Q)tests/distros.sh

# On a host that runs somebody else for up to 40 ms, ten times a second. What fails here is unsteady in CI. As root.
stalled: tests-build $(BUILD)/tests/bench/stalls
	$(Q)$(BUILD)/tests/bench/stalls 0.04 0.1 tests/run.py $(or $(SUITES),$(BUILD):unit $(BUILD):e2e)

# Programs of the tests, for as long as one likes; as root, through sudo where one is not.
soak: tests-build
	$(Q)tests/soak.sh $(BUILD) $(SECONDS)
	$(Q)tests/run.py $(BUILD):soak

-include $(MODELS:.o=.d) $(UNIT_TESTS:=.d) $(GOLDEN_TESTS:=.d) $(FIXTURES:=.d) $(E2E_TOOLS:=.d)
