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

/* Libraries of runtimes: below a directory of any prefix, but not what was installed into it. */
static const struct {
	const char *pattern, *except;
} sources[] = {
	{"node:*", NULL},
	{"<frozen *>", NULL},
	{"/lib/python[23].[0-9]*/*", "-packages/"},
	{"/lib64/python[23].[0-9]*/*", "-packages/"},
	{"/lib/ruby/[0-9].[0-9]*/*", "/gems/"},
};

/* Sorted by nothing: they are few. With a letter, because numbers are always hashed. */
static const char words[] =
	/* languages, compilers and loaders: what compare/names.c and readers look for */
	" main start init run bool char short int long float double void unsigned signed const auto"
	" static inline class struct enum union namespace template typename operator new delete"
	" func gowrap lambda closure anonymous anon Proxy Accessor unnamed Lambda MH anonfun impl for"
	" locals module listcomp genexpr dictcomp setcomp"
	" __init__ __main__ __new__ __call__ __del__ __iter__ __next__ __enter__ __exit__ __get__ __set__"
	" __getattr__ __setattr__ __getitem__ __setitem__ __contains__ __len__ __eq__ __lt__ __hash__"
	" __repr__ __str__ __bool__ __add__ __await__ __aenter__ __aexit__ __init_subclass__"
	" as dyn mut fn self this module clone isra constprop part cold llvm lto_priv localalias"
	" unlikely str str2 warm specialized so py js mjs cjs ts java jar class rb php pl go rs c cc cpp h"
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

/*
 * Functions that files have of their own under the name of one of libc, the kernel or a runtime: the
 * beginning of each program, what allocators replace, what is linked statically or written again.
 * Where a function is from does not matter for these, because comparisons merge by name.
 */
static const char functions[] =
	/* each program */
	" _start _init _fini start frame_dummy register_tm_clones deregister_tm_clones call_init"
	" __do_global_dtors_aux __libc_csu_init __libc_csu_fini __libc_start_main"
	" __libc_start_call_main __libc_start_main_impl _dl_relocate_static_pie start_thread"
	" thread_start clone clone3 __clone __clone3 __restore_rt"
	/* memory */
	" malloc calloc realloc free cfree memalign aligned_alloc posix_memalign valloc pvalloc"
	" reallocarray malloc_usable_size malloc_trim mallinfo mallopt malloc_consolidate"
	" __libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign _int_malloc"
	" _int_free _int_realloc _int_memalign unlink_chunk sysmalloc systrim mmap munmap mremap"
	" mprotect madvise brk sbrk __mmap __munmap __brk"
	/* bytes and texts */
	" memcpy memmove memset memcmp memchr memrchr memmem mempcpy rawmemchr bcopy bzero bcmp"
	" strlen strnlen strcmp strncmp strcasecmp strncasecmp strcpy strncpy stpcpy stpncpy strcat"
	" strncat strchr strchrnul strrchr strstr strcasestr strspn strcspn strpbrk strsep strtok"
	" strtok_r strdup strndup strlcpy strlcat strscpy strcoll strerror strerror_r strsignal"
	" wcslen wcscmp wcscpy wmemcpy wmemset strtol strtoul strtoll strtoull strtod strtof strtold"
	" atoi atol atof isalpha isdigit isspace tolower toupper"
	/* files, processes, time */
	" printf fprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf sscanf vsscanf puts"
	" fputs putchar fputc fgetc getc getline fgets fopen fclose fread fwrite fflush fseek ftell"
	" open openat close read write pread pwrite pread64 pwrite64 readv writev lseek stat fstat"
	" lstat fstatat access readlink getdents64 rename unlink mkdir rmdir ioctl fcntl dup dup2"
	" pipe pipe2 poll ppoll select epoll_wait epoll_ctl socket connect bind listen accept accept4"
	" send sendto sendmsg recv recvfrom recvmsg shutdown getaddrinfo syscall fork vfork execve"
	" waitpid wait4 exit _exit abort kill raise signal sigaction sleep usleep nanosleep"
	" clock_gettime clock_nanosleep gettimeofday time getpid gettid getenv setenv sched_yield"
	" pthread_create pthread_join pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait"
	" pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast pthread_rwlock_rdlock"
	" pthread_rwlock_wrlock pthread_rwlock_unlock pthread_spin_lock pthread_once"
	" pthread_getspecific pthread_setspecific sem_wait sem_post setjmp longjmp"
	/* numbers */
	" sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 expm1 log log2 log10 log1p pow"
	" sqrt cbrt hypot fmod floor ceil round trunc rint fabs ldexp frexp modf rand srand random"
	" srandom rand_r abs labs div gcd lcm"
	/* algorithms and words that the kernel and runtimes have, too */
	" qsort qsort_r bsearch sort list_sort hash crc16 crc32 crc32c adler32 md5 sha1 sha224 sha256"
	" sha384 sha512 xxh32 xxh64 inflate deflate uncompress compress hex2bin bin2hex show store"
	" parse number string pointer help load expand evict error complete prepend schedule panic"
	" yield up down noop get put set add remove insert lookup find next push pop clear copy"
	" compare swap lock unlock notify update reset release acquire flush emit encode decode dump"
	" dumps loads format join split match search replace call apply bind wrapper iter items keys"
	" values append extend index process handle dispatch ";

/* Patterns of the same: libc's internal names, its versions for instructions. */
static const char *const functions_like[] = {
	"__mem*_*unaligned*", "__mem*_sse*",  "__mem*_avx*",  "__mem*_evex*",
	"__mem*_erms*",	      "__str*_sse*",  "__str*_avx*",  "__str*_evex*",
	"__wcs*_avx*",	      "__wcs*_evex*", "__wmem*_avx*", "__wmem*_evex*",
};

/* Before numbers that a rebuild changes (compare/names.c). */
static const char *const marks[] = {
	"Lambda$MH$", "_lambda_", "__unnamed_", "lambda$", "Accessor", "$anonfun$",
};

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

const char *public_source(const char *path)
{
	for (const char *at = path; at; at = *at ? strchr(at + 1, '/') : NULL)
		for (size_t i = 0; i < COUNT(sources); i++)
			if (!fnmatch(sources[i].pattern, at, 0))
				return !sources[i].except || !strstr(at, sources[i].except) ? at
											    : NULL;
	return NULL;
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

size_t public_function(const char *name)
{
	size_t length = name_at(name, "");
	char text[64];

	if (!length || length >= sizeof(text))
		return 0;
	if (is_listed(functions, name, length))
		return length;
	memcpy(text, name, length);
	text[length] = '\0';
	return matches(functions_like, COUNT(functions_like), text) ? length : 0;
}

size_t public_mark(const char *at)
{
	for (size_t i = 0; i < COUNT(marks); i++) {
		size_t length = strlen(marks[i]);

		if (!strncmp(marks[i], at, length) && isdigit((unsigned char)at[length]))
			return length;
	}
	return 0;
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
