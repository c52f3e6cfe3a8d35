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
#   make test-tools          files of samply, rbspy and pprof-rs, which it builds first, once: build/profilers
#   make fuzz                fuzz the parsers, FUZZ_SECONDS=60 each
#   make vmtest              boot distribution kernels in qemu and record inside
#   make soak                SECONDS=600 of what an agent is made of, beside churn: nothing may grow; the log of
#                              memory, descriptors and CPU time is build/soak.log. Then cases of e2e for longer.
#   make stalled             unit and e2e, or SUITES="build:e2e/record …", on CPUs that are taken away again and again
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
READ_PKGS := libelf libdw libseccomp liblzma zlib libcjson libmicrohttpd
PKGS	  := libbpf inih $(READ_PKGS)

FUZZ_SECONDS ?= 60
SECONDS	     ?= 600

# With the sanitizers -O1 compiles in two thirds of the time, and without the places of variables, which no report shows, in
# two thirds of that. Warnings that need the analyses of -O2 to be right are left to the other build.
CFLAGS	  ?= $(if $(SANITIZE),-O1 -fno-var-tracking -Wno-format-truncation -Wno-maybe-uninitialized,-O2) -g
# A new compiler has new warnings: they fail the build of CI alone.
WERROR	  := $(if $(filter true,$(CI)),-Werror)
WARNINGS  := -Wall -Wextra $(WERROR) -Wmissing-prototypes -Wstrict-prototypes -Wvla
SANITIZERS := $(if $(SANITIZE),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
# A union that is initialized by one of its members has zeros elsewhere: gcc does that from 15 on only if it is said.
ZERO_UNIONS := $(shell $(CC) -fzero-init-padding-bits=unions -fsyntax-only -x c /dev/null 2>/dev/null && \
		       echo -fzero-init-padding-bits=unions)
# libcurl is loaded when it is needed, since it brings some thirty libraries
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) libcurl 2>/dev/null)
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) $(SANITIZERS) $(ZERO_UNIONS) -fno-omit-frame-pointer \
	      -Iinclude -Iuserspace -I$(NATIVE)/gen -DSYSPROF_VERSION='"$(VERSION)"' $(PKG_CFLAGS)
# Functions are bound at load: the loader's lazy binding saves registers on the stack, and the agent's may have a credential.
LDLIBS	  := -Wl,-z,relro,-z,now $(shell pkg-config --libs $(PKGS) 2>/dev/null) -liberty -ldl -lpthread -lm
ifdef STATIC
# Archives of Debian's, and of tools/static-libs.sh where it has none or one that wants what has none.
STATIC_LIBS := $(BUILD)/libs
ALL_CFLAGS := -I$(STATIC_LIBS)/include -DSYSPROF_STATIC -fPIE -fstack-protector-strong $(ALL_CFLAGS)
LDFLAGS	  += -static-pie -Wl,-z,relro,-z,now
LDLIBS	  := -L$(STATIC_LIBS)/lib -lbpf -ldw -lelf -lseccomp -lbz2 -llzma -lcjson -lmicrohttpd \
	     -linih -liberty -lcapstone -lcurl -lssl -lcrypto -lz -ldl -lpthread -lm
endif

ARCH	  := $(shell uname -m)
BPF_ARCH  := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))
BPF_CFLAGS := -std=gnu11 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra $(WERROR) \
	      -Wno-missing-declarations -Iinclude -I/usr/include/$(ARCH)-linux-gnu

Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')
# One job more than there are CPUs: some wait for the disk or for a network.
sub  = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell expr $$(nproc) + 1))

LIB_SOURCES   := $(filter-out userspace/cli/%,$(wildcard userspace/*/*.c userspace/*/*/*.c))
# Two archives: `record` has these rooms, `read` all others, which depend on none of these. tests/check-layers.sh compares
# this line with its table.
RECORD_ROOMS  := agent jit/follow live live/capture live/proc runtimes/ask session unwind
RECORD_SOURCES := $(filter $(RECORD_ROOMS:%=userspace/%/%),$(LIB_SOURCES))
READ_SOURCES  := $(filter-out $(RECORD_SOURCES),$(LIB_SOURCES))
# In the order of a linker's command line
LIBRARIES     := $(BUILD)/libsysprof-record.a $(BUILD)/libsysprof-read.a
CLI_SOURCES   := $(wildcard userspace/cli/*.c)
BPF_SOURCES   := $(wildcard bpf/*.bpf.c)
LIB_OBJECTS   := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
CLI_OBJECTS   := $(CLI_SOURCES:%.c=$(BUILD)/%.o)
BPF_OBJECTS   := $(BPF_SOURCES:%.c=$(NATIVE)/%.o)
SKELETONS     := $(BPF_SOURCES:bpf/%.bpf.c=$(NATIVE)/gen/%.skel.h)
DEMO	      := $(BUILD)/tools/demo_workload
# With programs that count what they call: tests/bench/bench.mk
COUNTED	      := $(BUILD)/counted/sysprof
# What an unwind table is made by: all that userspace/unwind/ may include (tests/check-layers.sh), but the runtimes and
# what is about tenants
TABLE_SOURCES := $(sort $(wildcard $(foreach d,base elf unwind,userspace/$d/*.[ch]) include/sysprof/unwind_*.h))

.PHONY: all demo install uninstall completions deb static check-deb check-static format clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/sysprof

$(BUILD)/sysprof: $(CLI_OBJECTS) $(LIBRARIES)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libsysprof-read.a: $(READ_SOURCES:%.c=$(BUILD)/%.o)
$(BUILD)/libsysprof-record.a: $(RECORD_SOURCES:%.c=$(BUILD)/%.o)
$(LIBRARIES):
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

# Tables that are kept on disk are of use to the very sources that made them, and to no others.
$(NATIVE)/gen/unwind/table_maker.h: $(TABLE_SOURCES)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && printf '#define TABLE_MAKER 0x%sull\n' \
		"$$(cat $(TABLE_SOURCES) | sha256sum | cut -c 1-16)" >$@

# The page of .html files: web/, put together into three arrays of bytes.
WEB_SOURCES := $(wildcard web/*)
$(NATIVE)/gen/formats/out/html_page.h: tools/bundle-page.sh $(WEB_SOURCES)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && tools/bundle-page.sh web >$@

$(BUILD)/userspace/formats/out/html.o $(BUILD)/fuzz/userspace/formats/out/html.o: $(NATIVE)/gen/formats/out/html_page.h

$(BUILD)/userspace/unwind/table_cache.o $(BUILD)/fuzz/userspace/unwind/table_cache.o: $(NATIVE)/gen/unwind/table_maker.h

$(DEMO): tools/demo_workload.c Makefile | $(BUILD)/.deps
	$(call say,DEMO,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(FIXTURE_CFLAGS) -MMD -MP -MF $@.d -o $@ $< -lpthread

demo:
	$(Q)tools/install-deps.sh demo
	$(Q)+$(sub) $(BUILD)/sysprof $(DEMO)
	$(Q)tools/demo.sh $(BUILD)

# What the shells complete, from the tables that the command line is parsed by.
COMPLETIONS := $(BUILD)/completions/sysprof $(BUILD)/completions/_sysprof $(BUILD)/completions/sysprof.fish
completions: $(COMPLETIONS)
tests-build e2e: $(COMPLETIONS)

$(BUILD)/tools/completions: tools/completions.c $(filter-out %/main.o,$(CLI_OBJECTS)) $(LIBRARIES)
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

# A tree without its tests can be built.
-include tests/tests.mk tests/bench/bench.mk tests/fuzz/fuzz.mk

-include $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(BPF_OBJECTS:.o=.d) $(DEMO).d
