# SPDX-License-Identifier: BSD-2-Clause
#
#   make            build build/sysprof (installs nothing)
#   make demo       install what is missing, build, record a few seconds, show the result
#   make test       install what is missing, build, run every test
#   make install    PREFIX=/usr/local DESTDIR=
#
# V=1 shows the commands, SANITIZE=1 builds with ASan, UBSan and LSan into build-asan/.

VERSION	  := 0.1.0
PREFIX	  ?= /usr/local
BUILD	  ?= $(if $(SANITIZE),build-asan,build)
CC	  ?= cc
CLANG	  ?= clang
BPFTOOL	  ?= $(firstword $(shell command -v bpftool) /usr/sbin/bpftool)
PKGS	  := libbpf libelf libdw libcjson zlib

CFLAGS	  ?= -O2 -g
WARNINGS  := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wvla
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(CFLAGS) $(SANITIZE_FLAGS) -fno-omit-frame-pointer \
	     -Iinclude -Iuserspace -I$(BUILD)/gen -DSYSPROF_VERSION='"$(VERSION)"' \
	     $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS	   = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -liberty
ifdef SANITIZE
SANITIZE_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all
endif

ARCH	  := $(shell uname -m)
BPF_ARCH  := $(if $(filter x86_64,$(ARCH)),x86,$(if $(filter aarch64,$(ARCH)),arm64,$(ARCH)))
BPF_CFLAGS = -std=gnu11 -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Wall -Wextra -Werror \
	     -Wno-missing-declarations -Iinclude -I/usr/include/$(ARCH)-linux-gnu

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

LIB_SOURCES := $(filter-out userspace/cli/%,$(wildcard userspace/*/*.c))
CLI_SOURCES := $(wildcard userspace/cli/*.c)
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/%.o)
CLI_OBJECTS := $(CLI_SOURCES:%.c=$(BUILD)/%.o)
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
SKELETONS   := $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/gen/%.skel.h)
UNIT_TESTS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))

.PHONY: all unit clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/sysprof

$(BUILD)/sysprof: $(CLI_OBJECTS) $(BUILD)/libsysprof.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libsysprof.a: $(LIB_OBJECTS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/userspace/%.o: userspace/%.c | $(SKELETONS)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/gen/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf >$@

# unit tests: each file is a cmocka program against the library
$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libsysprof.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d -o $@ $< $(BUILD)/libsysprof.a $(LDLIBS) -lcmocka

unit: $(UNIT_TESTS)
	$(Q)for t in $^; do echo "$$t"; $$t || exit 1; done

clean:
	rm -rf build build-asan

-include $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(BPF_SOURCES:%.c=$(BUILD)/%.d) $(UNIT_TESTS:=.d)
