# SPDX-License-Identifier: BSD-2-Clause
#
#   make            build build/sysprof, as any user; installs nothing
#   make demo       install what is missing, build, record the system for 5 s, show the result
#   make test       install what is missing, build, run the quick tests: a few minutes on two CPUs
#   make test-all   all tests, with the long cases, the fuzzers and the sanitizers, as CI does
#   make deb        a Debian package, in build/deb
#   make static     build/static/sysprof, one file for any x86-64 Linux from 5.10 on, whatever its C library
#   make check-deb check-static     installs, removes and purges the package; runs that file where there is nothing else
#   make install    PREFIX=/usr/local DESTDIR=        make uninstall undoes it
#
#   make unit golden e2e     one suite of the tests; the first two take less than a minute, and install what they need
#   make sanitize            ASan, UBSan and LSan: unit, golden, what can break memory of e2e, and
#                              what a `make e2e` before it recorded is read again
#   make golden-update       accept what the goldens see
#   make test-servers        the agent and running backends: Grafana Pyroscope and an OpenTelemetry Collector, which it
#                              builds first, once, in 15 minutes: build/servers
#   make fuzz                fuzz the parsers, FUZZ_SECONDS=60 each
#   make vmtest              boot distribution kernels in qemu and record inside
#   make soak                SECONDS=600 of what an agent is made of, beside churn: nothing may grow; the log of
#                              memory, descriptors and CPU time is build/soak.log. Then cases of e2e for longer.
#   make distros             bare Debian 12, 13 and testing: the demo and the tests there, from a fresh checkout
#   make bench               measure the budgets             make format      clang-format -i
#                            SECTIONS="programs unwinding": those alone, see tests/bench/bench.py
#
# V=1 shows the commands, SANITIZE=1 builds with the sanitizers into build-asan/.

VERSION	  := 0.1.0
PREFIX	  ?= /usr/local
MANDIR	  ?= $(PREFIX)/share/man
BUILD	  ?= $(if $(SANITIZE),build-asan,build)
# Where the kernel side is, and all that is generated: no sanitizer reaches it, so that it is made once
NATIVE	  := $(if $(SANITIZE),build,$(BUILD))
CC	  ?= cc
CLANG	  ?= clang
# Often in a directory that is not in a user's PATH. In Ubuntu before 25.04 the one there is a script that finds the
# real one for the running kernel only.
BPFTOOL	  ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool) \
			 $(shell PATH=$$PATH:/usr/sbin:/sbin command -v bpftool))
PKGS	  := libbpf libelf libdw libseccomp liblzma zlib libcjson libmicrohttpd inih

FUZZ_SECONDS ?= 60
SECONDS	     ?= 600

# With the sanitizers -O1 compiles in two thirds of the time. Warnings that need the analyses of -O2 to be right are
# left to the other build.
CFLAGS	  ?= $(if $(SANITIZE),-O1 -Wno-format-truncation -Wno-maybe-uninitialized,-O2) -g
# A new compiler has new warnings: they fail the build of CI alone.
WERROR	  := $(if $(filter true,$(CI)),-Werror)
WARNINGS  := -Wall -Wextra $(WERROR) -Wmissing-prototypes -Wstrict-prototypes -Wvla
SANITIZERS := $(if $(SANITIZE),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
# libcurl is loaded when it is needed, since it brings some thirty libraries
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) libcurl 2>/dev/null)
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) $(SANITIZERS) -fno-omit-frame-pointer \
	      -Iinclude -Iuserspace -I$(NATIVE)/gen -DSYSPROF_VERSION='"$(VERSION)"' $(PKG_CFLAGS)
# Functions are bound at load: the loader's lazy binding saves registers on the stack, and the agent's may have a credential.
LDLIBS	  := -Wl,-z,relro,-z,now $(shell pkg-config --libs $(PKGS) 2>/dev/null) -liberty -ldl -lpthread -lm
ifdef STATIC
# Archives of Debian's, and of tools/static-libs.sh where it has none or one that wants what has none.
STATIC_LIBS := $(BUILD)/libs
ALL_CFLAGS := -I$(STATIC_LIBS)/include -DSYSPROF_STATIC -fPIE -fstack-protector-strong $(ALL_CFLAGS)
LDFLAGS	  += -static-pie -Wl,-z,relro,-z,now
LDLIBS	  := -L$(STATIC_LIBS)/lib -lbpf -ldw -lelf -lseccomp -lbz2 -llzma -lcjson -lmicrohttpd \
	     -linih -liberty -lcurl -lssl -lcrypto -lz -ldl -lpthread -lm
endif
# protobuf-c is the tests' own reading of pprof files
TEST_LIBS := $(shell pkg-config --libs cmocka libprotobuf-c 2>/dev/null)

ARCH	  := $(shell uname -m)
BPF_ARCH  := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))
BPF_CFLAGS := -std=gnu11 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra $(WERROR) \
	      -Wno-missing-declarations -Iinclude -I/usr/include/$(ARCH)-linux-gnu

# Programs to be profiled: what their stacks look like is part of the tests, so CFLAGS and the
# sanitizers do not reach them.
FIXTURE_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -O2 -g -fno-omit-frame-pointer \
		 -fno-optimize-sibling-calls -Iinclude

Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')
sub  = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

LIB_SOURCES   := $(filter-out userspace/cli/%,$(wildcard userspace/*/*.c userspace/*/*/*.c))
CLI_SOURCES   := $(wildcard userspace/cli/*.c)
BPF_SOURCES   := $(wildcard bpf/*.bpf.c)
LIB_OBJECTS   := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
CLI_OBJECTS   := $(CLI_SOURCES:%.c=$(BUILD)/%.o)
PROTOS	      := $(patsubst proto/%.proto,gen/%.pb-c,$(wildcard proto/*.proto))
BPF_OBJECTS   := $(BPF_SOURCES:%.c=$(NATIVE)/%.o)
SKELETONS     := $(BPF_SOURCES:bpf/%.bpf.c=$(NATIVE)/gen/%.skel.h)
UNIT_TESTS    := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
# What the walks in the kernel do, written down a second time for programs that compare; a profile as text, look-ups in a table
MODELS	      := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/models/*.c))
TEST_LIB      := $(BUILD)/tests/libmodels.a $(BUILD)/libsysprof.a
GOLDEN_TESTS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/golden/*.c))
FIXTURES      := $(patsubst %.c,$(BUILD)/%,$(filter-out tests/fixtures/lib%,$(wildcard tests/fixtures/*.c))) \
		 $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/fixtures/lib*.c)) \
		 $(BUILD)/tests/fixtures/chain-no-fp $(BUILD)/tests/fixtures/deep-no-fp
E2E_TOOLS     := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/e2e/*.c))
# That of the tests that are repeated with the sanitizers
SANITIZED_TOOLS := $(BUILD)/tests/e2e/push_windows
BENCHES       := $(patsubst %.c,$(BUILD)/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
COUNTED	      := $(BUILD)/counted/sysprof
DEMO	      := $(BUILD)/tools/demo_workload
FUZZERS	      := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
# What an unwind table is made by: all that userspace/unwind/ may include (tests/check-layers.sh), but the helpers and the runtimes
TABLE_SOURCES := $(sort $(wildcard $(foreach d,base elf unwind,userspace/$d/*.[ch]) include/sysprof/unwind_*.h))
# What fuzz targets are linked with: all that needs neither the kernel side nor a server, and nothing of the watcher
FUZZ_SOURCES  := $(filter-out userspace/capture/% userspace/jit/follow/% userspace/runtimes/ask/% userspace/live/% userspace/serve/%,$(LIB_SOURCES)) $(wildcard tests/models/*.c)
FUZZ_OBJECTS  := $(FUZZ_SOURCES:%.c=$(BUILD)/fuzz/%.o)

.PHONY: all quick-build tests-build test test-all test-servers quick-tests unit golden golden-update e2e sanitize fuzz fuzz-build demo vmtest distros bench soak install uninstall completions deb static check-deb check-static format clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/sysprof

$(BUILD)/sysprof: $(CLI_OBJECTS) $(BUILD)/libsysprof.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libsysprof.a: $(LIB_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# What is missing is said by name, before a compiler says it by line.
$(BUILD)/.deps: tools/install-deps.sh
	$(Q)tools/install-deps.sh --check build && mkdir -p $(@D) && touch $@

$(BUILD)/userspace/%.o: userspace/%.c Makefile | $(BUILD)/.deps $(SKELETONS)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(NATIVE)/bpf/%.bpf.o: bpf/%.bpf.c Makefile | $(BUILD)/.deps
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

# gen object drops the DWARF, which nothing reads once the BTF is there
$(NATIVE)/gen/%.skel.h: $(NATIVE)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen object $(<:.o=.linked) $< && \
		$(BPFTOOL) gen skeleton $(<:.o=.linked) name $(subst -,_,$*)_bpf >$@

# sysprof with programs that count what they call, for `make bench`: see tests/bench/counted_calls.bpf.h
$(BUILD)/counted/gen/counted-helpers.h: Makefile | $(BUILD)/.deps
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

$(BUILD)/counted/capture/%.o: userspace/capture/%.c $(BUILD)/counted/gen/sampler.skel.h $(BUILD)/libsysprof.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -I$(BUILD)/counted/gen $(ALL_CFLAGS) -c -o $@ $<

$(COUNTED): $(patsubst userspace/%.c,$(BUILD)/counted/%.o,$(wildcard userspace/capture/*.c)) $(CLI_OBJECTS) $(BUILD)/libsysprof.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(NATIVE)/gen/%.pb-c.h $(NATIVE)/gen/%.pb-c.c &: proto/%.proto | $(BUILD)/.deps
	$(call say,PROTO,$<)
	$(Q)mkdir -p $(@D) && protoc-c --proto_path=proto --c_out=$(@D) $<

$(BUILD)/gen/%.pb-c.o: $(NATIVE)/gen/%.pb-c.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -c -o $@ $<

# Tables that are kept on disk are of use to the very sources that made them, and to no others.
$(NATIVE)/gen/unwind/table_maker.h: $(TABLE_SOURCES)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && printf '#define TABLE_MAKER 0x%sull\n' \
		"$$(cat $(TABLE_SOURCES) | sha256sum | cut -c 1-16)" >$@

# The page of .html files: web/, put together into two arrays of bytes.
WEB_SOURCES := $(wildcard web/*)
$(NATIVE)/gen/formats/out/html_page.h: tools/bundle-page.sh $(WEB_SOURCES)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && tools/bundle-page.sh web >$@

$(BUILD)/userspace/formats/out/html.o $(BUILD)/fuzz/userspace/formats/out/html.o: $(NATIVE)/gen/formats/out/html_page.h

$(BUILD)/userspace/unwind/table_cache.o $(BUILD)/fuzz/userspace/unwind/table_cache.o: $(NATIVE)/gen/unwind/table_maker.h

$(BUILD)/tests/models/%.o: tests/models/%.c Makefile | $(BUILD)/.deps
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/libmodels.a: $(MODELS) $(PROTOS:%=$(BUILD)/%.o)
	$(Q)rm -f $@ && ar rcs $@ $^

# Tests: a cmocka program each against the library. After a change of the library they are only linked again. Their own code
# is compiled without optimization, in a third of the time.
$(BUILD)/tests/unit/%.o: tests/unit/%.c Makefile | $(BUILD)/.deps $(SKELETONS) $(PROTOS:%=$(NATIVE)/%.h)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -O0 -Wno-format-truncation -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(TEST_LIB)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(TEST_LIB) $(LDLIBS) $(TEST_LIBS)

$(BUILD)/tests/e2e/%: tests/e2e/%.c $(TEST_LIB) Makefile
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d -o $@ $< $(TEST_LIB) $(LDLIBS)

$(BUILD)/tests/golden/%: tests/golden/%.c $(TEST_LIB) Makefile
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d -o $@ $< $(TEST_LIB) $(LDLIBS) $(TEST_LIBS)

$(BUILD)/tests/fixtures/lib%.so: tests/fixtures/lib%.c Makefile | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -fPIC -shared -o $@ $<

# As most of production code is: what main calls has no frame pointer.
$(BUILD)/tests/fixtures/%-no-fp: tests/fixtures/%.c Makefile | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -fomit-frame-pointer -MMD -MP -MF $@.d -o $@ $< -lpthread

# Those of vmtest, which has its own tools.
$(BUILD)/tests/fixtures/%-lld: tests/fixtures/%.c Makefile | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -fomit-frame-pointer -fuse-ld=lld -MMD -MP -MF $@.d -o $@ $< -lpthread

$(BUILD)/tests/fixtures/%-go: tests/fixtures/go/%.go Makefile
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && CGO_ENABLED=0 GOFLAGS= GOCACHE=$(abspath $(BUILD)/go-cache) go build -o $@ $<

$(BUILD)/tests/fixtures/%: tests/fixtures/%.c Makefile | $(BUILD)/.deps
	$(call say,FIXTURE,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl

# Those that measure parts of the library.
$(BUILD)/tests/bench/symbolize $(BUILD)/tests/bench/tables $(BUILD)/tests/bench/jit_map $(BUILD)/tests/bench/export $(BUILD)/tests/bench/readers $(BUILD)/tests/bench/big_profile: $(BUILD)/tests/bench/%: tests/bench/%.c \
		$(BUILD)/libsysprof.a Makefile
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libsysprof.a $(LDLIBS)

# One that has a program of its own for the kernel.
$(BUILD)/tests/bench/%.bpf.o: tests/bench/%.bpf.c Makefile | $(BUILD)/.deps
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/bench/%.skel.h: $(BUILD)/tests/bench/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

$(BUILD)/tests/bench/task_work: tests/bench/task_work.c $(BUILD)/tests/bench/task_work.skel.h Makefile
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -I$(BUILD)/tests/bench -MMD -MP -MF $@.d -o $@ $< $(LDLIBS)

$(BUILD)/tests/bench/%: tests/bench/%.c Makefile | $(BUILD)/.deps
	$(call say,BENCH,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread -ldl

$(DEMO): tools/demo_workload.c Makefile | $(BUILD)/.deps
	$(call say,DEMO,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread

# Fuzz targets: clang's coverage and both sanitizers, in what they reach of the library as well. That
# one warning clang gives for initializers which gcc accepts, some of them in others' headers.
FUZZ_CFLAGS = $(ALL_CFLAGS) -gline-tables-only -Wno-missing-field-initializers -Wno-gnu-variable-sized-type-not-at-end -fsanitize=address,undefined \
	      -fno-sanitize-recover=all

$(BUILD)/fuzz/userspace/%.o: userspace/%.c Makefile | $(BUILD)/.deps
	$(call say,FUZZ CC,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/tests/%.o: tests/%.c Makefile | $(BUILD)/.deps
	$(call say,FUZZ CC,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -Itests -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/library.a: $(FUZZ_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/library.a Makefile
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -Itests -fsanitize=fuzzer -MMD -MP -MF $@.d -o $@ $< $(BUILD)/fuzz/library.a $(LDLIBS)

$(BUILD)/fuzz/seeds/.made: tests/fuzz/seeds.sh tests/fixtures/go/table.S $(wildcard tests/golden/recordings/*.sysprof)
	$(call say,SEEDS,$(@D))
	$(Q)CLANG='$(CLANG)' $< $(@D) && touch $@

fuzz-build: $(FUZZERS) $(BUILD)/fuzz/seeds/.made

# Of all tests only what `make test` runs.
quick-build: all $(UNIT_TESTS) $(GOLDEN_TESTS) $(FIXTURES)

tests-build: quick-build $(if $(SANITIZE),$(SANITIZED_TOOLS),$(E2E_TOOLS) $(COUNTED) $(BUILD)/tests/bench/bpf_maps) build/consumers/stamp build/libdw/stamp build/runtimes/stamp build/oracle/programs build/go-cache/stamp

# The viewers that judge what is written. Fetched here, by the caller, so that nothing fetches them as
# root; without a network the tests that want them say so.
build/consumers/stamp: tests/e2e/consumers/package.json
	$(call say,NPM,$(@D))
	-$(Q)tests/e2e/consumers/install.sh $(@D) >/dev/null

# Newer than the system's, where that does not know .dwp files.
build/libdw/stamp: tests/e2e/libdw/fetch.sh
	$(call say,LIBDW,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) >/dev/null && touch $@

# Runtimes with JIT code whose versions report more about it.
build/runtimes/stamp: tests/e2e/runtimes/fetch.sh
	$(call say,RUNTIMES,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) >/dev/null && touch $@

# Go compiles its pprof when it is first run, in a minute of CPU time: once for all tests.
build/go-cache/stamp:
	$(call say,GO,$(@D))
	$(Q)mkdir -p $(@D)
	-$(Q)GOCACHE=$(abspath $(@D)) GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 go tool pprof -h >/dev/null 2>&1
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

# Programs whose inline chains are compared with another symbolizer's; also fetched and built by the
# caller. What cannot be had is listed, and said by the test.
build/oracle/programs: tests/e2e/oracle/build.sh $(wildcard tests/fixtures/dwarf/*)
	$(call say,ORACLE,$(@D))
	$(Q)$< $(@D)

# What `make test` proves, and what `make test-all` adds to it. tests/run.sh has the suites.
CHECKS		:= layers house format build:unit build:golden
SANITIZED_SUITES := build-asan:unit build-asan:golden build-asan:sanitized build-asan:replay
ALL_SUITES	:= $(CHECKS) build:e2e build:distros build:long $(SANITIZED_SUITES) build:fuzz # short ones at the end: no lane waits for long

# Installing and building are separate makes: what the first puts there, the second has to look for.
# `make test test-all` runs nothing twice.
test:
ifeq ($(filter test-all,$(MAKECMDGOALS)),)
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) quick-build
	$(Q)tests/run.sh $(CHECKS) build:quick
endif

test-all:
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) tests-build
	$(Q)+$(sub) fuzz-build
	$(Q)+$(sub) SANITIZE=1 tests-build
	$(Q)tests/run.sh $(ALL_SUITES)

sanitize:
	$(Q)+$(sub) SANITIZE=1 tests-build
	$(Q)tests/run.sh $(filter-out $(if $(wildcard build/tests/recordings/made),,%:replay),$(SANITIZED_SUITES))

# Built at once, so that both may be made with -j.
quick-tests:
	$(Q)tools/install-deps.sh unit
	$(Q)+$(sub) $(BUILD)/sysprof $(if $(filter unit,$(MAKECMDGOALS)),$(UNIT_TESTS)) \
		$(if $(filter golden%,$(MAKECMDGOALS)),$(GOLDEN_TESTS))

unit: quick-tests
	$(Q)tests/run.sh $(BUILD):unit

golden: quick-tests
	$(Q)tests/run.sh $(BUILD):golden

golden-update: quick-tests
	$(Q)GOLDEN_UPDATE=1 tests/run.sh $(BUILD):golden

e2e: all $(FIXTURES) $(E2E_TOOLS) build/consumers/stamp build/libdw/stamp build/runtimes/stamp build/oracle/programs build/go-cache/stamp
	$(Q)tests/run.sh $(BUILD):e2e

test-servers:
	$(Q)tools/install-deps.sh test
	$(Q)+$(sub) all $(BUILD)/tests/fixtures/chain $(BUILD)/tests/e2e/agent_formats $(SERVERS)
	$(Q)tests/run.sh $(BUILD):servers

fuzz:
	$(Q)tools/install-deps.sh --check fuzz
	$(Q)+$(sub) fuzz-build
	$(Q)BUILD='$(BUILD)' FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(notdir $(FUZZERS))

demo:
	$(Q)tools/install-deps.sh demo
	$(Q)+$(sub) $(BUILD)/sysprof $(DEMO)
	$(Q)tools/demo.sh $(BUILD)

vmtest: all
	$(Q)tools/install-deps.sh --check vmtest
	$(Q)+$(sub) $(addprefix $(BUILD)/tests/fixtures/,chain-no-fp chain-lld chain-go waits packets completions guest) $(BUILD)/tests/unit/test_wall
	$(Q)vmtest/run.sh $(BUILD)

# As root, through sudo where one is not.
distros:
	$(Q)tools/install-deps.sh distros
	$(Q)tests/distros.sh

# Runtimes to be measured, fetched by the caller like those above.
build/programs/stamp: tests/bench/programs/fetch.sh
	$(call say,PROGRAMS,$(@D))
	-$(Q)mkdir -p $(@D) && $< $(@D) && touch $@

bench: all $(COUNTED) $(FIXTURES) $(BENCHES) $(BUILD)/tests/unit/test_compare $(BUILD)/tests/e2e/push_windows $(BUILD)/tests/e2e/index_oracle build/programs/stamp
	$(Q)tools/install-deps.sh --check bench || echo "going on without"
	$(Q)tests/bench/run.sh $(BUILD) $(SECTIONS)

# Programs of the tests, for as long as one likes; as root, through sudo where one is not.
soak: tests-build
	$(Q)tests/soak.sh $(BUILD) $(SECONDS)
	$(Q)tests/run.sh $(BUILD):soak

# What the shells complete, from the tables that the command line is parsed by.
COMPLETIONS := $(BUILD)/completions/sysprof $(BUILD)/completions/_sysprof $(BUILD)/completions/sysprof.fish
completions: $(COMPLETIONS)
tests-build e2e: $(COMPLETIONS)

$(BUILD)/tools/completions: tools/completions.c $(filter-out %/main.o,$(CLI_OBJECTS)) $(BUILD)/libsysprof.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $^ $(LDLIBS)

$(BUILD)/completions/sysprof: SHELL_NAME := bash
$(BUILD)/completions/_sysprof: SHELL_NAME := zsh
$(BUILD)/completions/sysprof.fish: SHELL_NAME := fish
$(COMPLETIONS): $(BUILD)/tools/completions
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && $< $(SHELL_NAME) >$@

SHARE	  = $(DESTDIR)$(PREFIX)/share
INSTALLED = $(DESTDIR)$(PREFIX)/bin/sysprof $(DESTDIR)$(MANDIR)/man1/sysprof.1 \
	    $(SHARE)/bash-completion/completions/sysprof $(SHARE)/zsh/vendor-completions/_sysprof \
	    $(SHARE)/fish/vendor_completions.d/sysprof.fish

install: all completions
	install -D -m 755 $(BUILD)/sysprof $(word 1,$(INSTALLED))
	install -D -m 644 docs/sysprof.1 $(word 2,$(INSTALLED))
	install -D -m 644 $(BUILD)/completions/sysprof $(word 3,$(INSTALLED))
	install -D -m 644 $(BUILD)/completions/_sysprof $(word 4,$(INSTALLED))
	install -D -m 644 $(BUILD)/completions/sysprof.fish $(word 5,$(INSTALLED))

uninstall:
	rm -f $(INSTALLED)

# A Debian package of the committed tree, in build/deb.
deb:
	$(Q)tools/install-deps.sh deb
	$(Q)tools/build-deb.sh $(BUILD)/deb

# One portable program. What its libraries are made of comes from Debian's source packages.
static:
	$(Q)tools/install-deps.sh static
	$(Q)[ -e build/static/libs/made ] || tools/static-libs.sh build/static/libs
	$(Q)+$(sub) STATIC=1 BUILD=build/static build/static/sysprof

# What these two make, tried where it is to work: minutes of building, so that no other suite has them. As root.
check-deb: deb
	$(Q)tests/check-deb.sh $(BUILD)/deb/sysprof-bpf_*.deb

check-static: static $(BUILD)/tests/fixtures/chain-no-fp
	$(Q)mkdir -p $(BUILD)/tests/static
	$(Q)cd $(BUILD)/tests/static && SYSPROF=$(abspath build/static/sysprof) BUILD=$(abspath $(BUILD)) \
		SCRATCH=$$(mktemp -d $(abspath $(BUILD))/tests/static/XXXXXX) $(CURDIR)/tests/check-static.py

format:
	$(Q)tests/check-format.sh --fix

clean:
	rm -rf build build-asan

-include $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(BPF_OBJECTS:.o=.d)
-include $(MODELS:.o=.d) $(UNIT_TESTS:=.d) $(GOLDEN_TESTS:=.d) $(FIXTURES:=.d) $(E2E_TOOLS:=.d) $(BENCHES:=.d) $(DEMO).d \
	 $(FUZZ_OBJECTS:.o=.d) $(FUZZERS:=.d)
