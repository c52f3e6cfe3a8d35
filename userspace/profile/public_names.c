/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/public_names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "base/order.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Patterns of fnmatch(3). */
static const char *const modules[] = {
	/* libc and what belongs to it */
	"libc.so*",
	"libc-2.*.so",
	"libc.musl-*.so*",
	"ld-linux*.so*",
	"ld-2.*.so",
	"ld-musl-*.so*",
	"libm.so*",
	"libm-2.*.so",
	"libpthread.so*",
	"libpthread-2.*.so",
	"libdl.so*",
	"librt.so*",
	"libresolv.so*",
	"libstdc++.so*",
	"libgcc_s.so*",
	"libc++.so*",
	"libc++abi.so*",
	"libunwind.so*",
	"libatomic.so*",
	"linux-vdso.so*",
	/* Java */
	"java",
	"libjvm.so",
	"libjli.so",
	"libjava.so",
	"libjimage.so",
	"libnet.so",
	"libnio.so",
	"libzip.so",
	"libverify.so",
	"libextnet.so",
	/* JavaScript */
	"node",
	"nodejs",
	"libnode.so*",
	"deno",
	"bun",
	/* Python */
	"python",
	"python[23]",
	"python[23].[0-9]",
	"python3.[0-9][0-9]",
	"libpython[23].*so*",
	"pypy3",
	"pypy3.[0-9]*",
	"libpypy3*.so*",
	/* others */
	"ruby",
	"ruby[0-9].[0-9]",
	"libruby*.so*",
	"perl",
	"libperl.so*",
	"php",
	"php[0-9].[0-9]",
	"php-fpm",
	"php-fpm[0-9].[0-9]",
	"luajit",
	"libluajit*.so*",
	"dotnet",
	"libcoreclr.so",
	"libclrjit.so",
	"libhostpolicy.so",
	"libSystem.Native.so",
	"libmonosgen-2.0.so*",
	"beam.smp",
};

static const char *const kernel_modules[] = {
	"ext4",	  "jbd2",      "xfs",	    "btrfs",	"overlay",   "nfs*",	     "fuse",
	"kvm",	  "kvm_*",     "irqbypass", "virtio*",	"vhost*",    "nvme*",	     "nf_*",
	"nft_*",  "xt_*",      "ip_tables", "x_tables", "iptable_*", "br_netfilter", "bridge",
	"veth",	  "tun",       "tls",	    "dm_*",	"raid*",     "sd_mod",	     "scsi_mod",
	"libata", "ahci",      "xhci_*",    "usbcore",	"e1000e",    "ixgbe",	     "i40e",
	"ice",	  "mlx5_core", "ena",	    "gve",	"hv_*",	     "vmw_*",	     "i915",
	"amdgpu", "drm",       "snd*",	    "bpf",
};

/*
 * Beginnings of qualified names. A namespace ends at the first sign that is no colon: behind it
 * there may be another name, as in Rust's "core::ptr::drop_in_place$LT$shop..Order$GT$".
 */
static const struct {
	enum name_language language;
	const char *text;
} packages[] = {
	{NAME_NATIVE, "std::"},
	{NAME_NATIVE, "__gnu_cxx::"},
	{NAME_NATIVE, "__cxxabiv1::"},
	/* Go */
	{NAME_NATIVE, "runtime."},
	{NAME_NATIVE, "runtime/cgo."},
	{NAME_NATIVE, "runtime/debug."},
	{NAME_NATIVE, "runtime/internal/"},
	{NAME_NATIVE, "runtime/metrics."},
	{NAME_NATIVE, "runtime/pprof."},
	{NAME_NATIVE, "runtime/trace."},
	{NAME_NATIVE, "internal/abi."},
	{NAME_NATIVE, "internal/bytealg."},
	{NAME_NATIVE, "internal/chacha8rand."},
	{NAME_NATIVE, "internal/cpu."},
	{NAME_NATIVE, "internal/fmtsort."},
	{NAME_NATIVE, "internal/godebug."},
	{NAME_NATIVE, "internal/poll."},
	{NAME_NATIVE, "internal/race."},
	{NAME_NATIVE, "internal/reflectlite."},
	{NAME_NATIVE, "internal/runtime/"},
	{NAME_NATIVE, "internal/stringslite."},
	{NAME_NATIVE, "internal/sync."},
	{NAME_NATIVE, "internal/syscall/"},
	{NAME_NATIVE, "sync."},
	{NAME_NATIVE, "sync/atomic."},
	{NAME_NATIVE, "syscall."},
	{NAME_NATIVE, "reflect."},
	{NAME_NATIVE, "fmt."},
	{NAME_NATIVE, "strconv."},
	{NAME_NATIVE, "bufio."},
	{NAME_NATIVE, "encoding/json."},
	{NAME_NATIVE, "net/http."},
	{NAME_NATIVE, "crypto/tls."},
	{NAME_MANAGED, "java."},
	{NAME_MANAGED, "java/"},
	{NAME_MANAGED, "javax."},
	{NAME_MANAGED, "jdk."},
	{NAME_MANAGED, "jdk/"},
	{NAME_MANAGED, "sun."},
	{NAME_MANAGED, "kotlin."},
	{NAME_MANAGED, "scala."},
};

/* C++ programs have namespaces of these names as well, so only known modules of Rust's are kept. */
static const char *const crates[] = {"core::", "alloc::"};
static const char modules_of_crates[] =
	" alloc any array ascii borrow boxed cell char clone cmp collections convert core_arch default"
	" escape fmt future hash hint intrinsics iter marker mem num ops option panic panicking pin ptr"
	" raw_vec rc result slice str string sync task unicode vec ";

static const char *const directories[] = {
	"/usr/lib/x86_64-linux-gnu/",
	"/lib/x86_64-linux-gnu/",
	"/usr/local/lib/",
	"/usr/local/bin/",
	"/usr/lib64/",
	"/usr/lib/",
	"/usr/sbin/",
	"/usr/bin/",
	"/lib64/",
	"/lib/",
	"/bin/",
	"/sbin/",
	"/tmp/",
	"/opt/",
	"/home/",
	"/srv/",
	"/var/lib/",
	"/dev/shm/",
};

/* Libraries of source files: below a directory, but not what was installed into it. */
static const struct {
	const char *pattern, *except;
} sources[] = {
	{"node:*", NULL},
	{"<frozen *>", NULL},
	{"/usr/lib/python[23].[0-9]*/*", "-packages/"},
	{"/usr/local/lib/python[23].[0-9]*/*", "-packages/"},
	{"/usr/lib/ruby/[0-9].[0-9]*/*", "/gems/"},
};

/* Sorted by nothing: they are few. With a letter, because numbers are always hashed. */
static const char words[] =
	/* languages, compilers and loaders: what compare/names.c and readers look for */
	" main start init run bool char short int long float double void unsigned signed const auto"
	" static inline class struct enum union namespace template typename operator new delete"
	" func gowrap lambda closure anonymous anon Proxy Accessor unnamed Lambda MH anonfun impl for"
	" as dyn mut fn self this module clone isra constprop part cold llvm lto_priv localalias"
	" unlikely str warm specialized so py js mjs cjs ts java jar class rb php pl go rs c cc cpp h"
	" hpp lib bin usr tmp home opt srv var dev shm perf map dump jit deleted memfd file"
	/* what sysprof and the formats call things */
	" sysprof record agent unknown kernel kallsyms vdso vsyscall vectors heap stack idle root"
	" program garbage collector native interpreted softirq hardirq interrupts waiting running"
	" runnable throttled disk lock network pipe poll sleep child fault stopped other inlined bpf"
	" bpf_prog_ swapper ended JIT code without a name vmlinux ko LT GT RF"
	" focus ignore hide show from collapse state process thread"
	/* threads of the kernel */
	" kworker ksoftirqd migration kthreadd kswapd kcompactd khugepaged rcu_preempt rcu_sched"
	" cpuhp irq jbd writeback u"
	/* control groups and facts */
	" system user slice scope service session docker containerd cri kubepods burstable besteffort"
	" guaranteed pod machine lxc init exe script env otel_ctx resource_attributes rule annotation kubernetes"
	" container parent none OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES"
	/* events */
	" cpu clock task cycles instructions cache references misses branches branch bus stalled"
	" frontend backend ref page faults minor major context switches migrations alignment"
	" emulation dummy output cgroup event samples count alloc_objects alloc_space inuse_objects"
	" inuse_space contentions delay bytes nanoseconds microseconds seconds wall weight objects"
	/* releases of kernels */
	" Linux generic amd azure aws gcp cloud rt el fc lts pve arch fbk ";

static bool matches(const char *const *patterns, size_t count, const char *name)
{
	return any_of(patterns, count, pattern, !fnmatch(*pattern, name, 0));
}

bool is_public_module(const char *name)
{
	return matches(modules, COUNT(modules), name);
}

bool is_public_kernel_module(const char *name, size_t length)
{
	char module[64];

	if (length >= sizeof(module))
		return false;
	memcpy(module, name, length);
	module[length] = '\0';
	return matches(kernel_modules, COUNT(kernel_modules), module);
}

bool is_public_source(const char *path)
{
	for (size_t i = 0; i < COUNT(sources); i++)
		if (!fnmatch(sources[i].pattern, path, 0))
			return !sources[i].except || !strstr(path, sources[i].except);
	return false;
}

/* Is it one of the words of a list, which has a space around each? */
static bool is_listed(const char *list, const char *word, size_t length)
{
	for (const char *at = list; length && (at = memmem(at, strlen(at), word, length)); at++)
		if (at > list && at[-1] == ' ' && at[length] == ' ')
			return true;
	return false;
}

bool is_public_word(const char *word, size_t length)
{
	return is_listed(words, word, length);
}

/* What is a word, and what is between the words of a name. */
static size_t name_at(const char *at, const char *signs)
{
	size_t size = 0;

	while (isalnum((unsigned char)at[size]) || at[size] == '_' ||
	       (at[size] && strchr(signs, at[size])))
		size++;
	return size;
}

static bool has_public_crate(const char *name)
{
	for (size_t i = 0; i < COUNT(crates); i++) {
		size_t crate = strlen(crates[i]), module;

		if (strncmp(crates[i], name, crate) != 0)
			continue;
		module = name_at(name + crate, "");
		return !strncmp(name + crate + module, "::", 2) &&
		       is_listed(modules_of_crates, name + crate, module);
	}
	return false;
}

size_t public_qualified_name(const char *name, enum name_language language)
{
	if (language == NAME_NATIVE && has_public_crate(name))
		return name_at(name, ":");
	for (size_t i = 0; i < COUNT(packages); i++) {
		const char *text = packages[i].text;

		if (packages[i].language == language && !strncmp(text, name, strlen(text)))
			return name_at(name, language == NAME_MANAGED ? ".:/$"
					     : strchr(text, ':')      ? ":"
								      : "./");
	}
	return 0;
}

size_t public_directory(const char *path)
{
	for (size_t i = 0; i < COUNT(directories); i++)
		if (!strncmp(directories[i], path, strlen(directories[i])))
			return strlen(directories[i]);
	return 0;
}
