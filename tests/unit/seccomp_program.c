/*
 * The filter as data: a small BPF interpreter runs every program of engine/native/seccomp.c for every number, for each
 * row of tables/syscalls.def and for hostile encodings of each argument that a rule looks at.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "engine/native/seccomp.h"
#include "lib/observe.h"
#include "policy/policy.h"

#define KILL SECCOMP_RET_KILL_PROCESS
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define NO_CALL ERRNO(ENOSYS)

/* Numbers that Debian 12's headers lack, written down a second time on purpose. */
enum {
	NR_uretprobe = 335, NR_uprobe = 336, NR_cachestat = 451, NR_fchmodat2, NR_map_shadow_stack, NR_futex_wake,
	NR_futex_wait, NR_futex_requeue, NR_statmount, NR_listmount, NR_lsm_get_self_attr, NR_lsm_set_self_attr,
	NR_lsm_list_modules, NR_mseal, NR_setxattrat, NR_getxattrat, NR_listxattrat, NR_removexattrat,
	NR_open_tree_attr, NR_file_getattr, NR_file_setattr
};

enum from { STRICT, DEFAULT, BUILD, NESTING, NEVER };
enum otherwise { OTHERWISE_DENY, OTHERWISE_ENOSYS };

struct row {
	const char *name, *rule;
	enum from from;
	enum otherwise otherwise;
};

static const struct row rows[] = {
#define NUMBER(...)
#define CALL(call, first, other, by, why) { #call, #by, first, OTHERWISE_##other },
#define RULE(...)
#define VALUE(...)
#define RANGE(...)
#define HOT(...)
#define RUNG(...)
#define NEST(...)
#include "syscalls.def"
#undef CALL
#undef RUNG
#undef NEST
};

static const struct rung_row {
	const char *name, *action;
} rung_rows[] = {
#define CALL(...)
#define RUNG(call, act, rule) { #call, #act },
#define NEST(...)
#include "syscalls.def"
#undef RUNG
#undef NEST
}, nest_rows[] = {
#define RUNG(...)
#define NEST(call, act, rule) { #call, #act },
#include "syscalls.def"
};

static const struct {
	const char *name;
	int nr;
} numbers[] = {
#include "seccomp-numbers.h"
};

static struct sock_filter code[SECCOMP_PROGRAM_MAX];
static size_t code_len;
static unsigned steps;

static void take(unsigned set, unsigned flags)
{
	assert_int_equal(seccomp_program(set, flags, code, SECCOMP_PROGRAM_MAX, &code_len), 0);
}

static uint32_t run(const struct seccomp_data *d)
{
	uint32_t a = 0;
	size_t pc = 0;

	for (steps = 0;; steps++) {
		assert_in_range(pc, 0, code_len - 1);
		const struct sock_filter *i = &code[pc++];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_in_range(i->k, 0, sizeof(*d) - 4);
			assert_int_equal(i->k % 4, 0);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %zu: code %#x", pc - 1, i->code);
		}
	}
}

static uint32_t fate(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct seccomp_data data = { (int)nr, AUDIT_ARCH_X86_64, 0, { a, b, c, d, 0, 0 } };

	return run(&data);
}

/* Upper halves that the kernel ignores in an int: none may change the answer. */
static const uint64_t halves[] = { 0, 1ULL << 32, 0xffffffff00000000ULL, 1ULL << 63, 0xdeadbeef00000000ULL };

/* The fate of a call by one int argument, the others being what `args` says; asserts that upper halves do not matter. */
static uint32_t by_int(long nr, unsigned arg, uint32_t value, const uint64_t args[6])
{
	uint32_t first = 0;

	for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
		struct seccomp_data data = { (int)nr, AUDIT_ARCH_X86_64, 0, { 0 } };

		if (args)
			memcpy(data.args, args, sizeof(data.args));
		data.args[arg] = halves[i] | value;
		uint32_t r = run(&data);

		if (i == 0)
			first = r;
		assert_int_equal(r, first);
	}
	return first;
}

static int number_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (strcmp(numbers[i].name, name) == 0)
			return numbers[i].nr;
	fail_msg("no number for %s", name);
	return -1;
}

static const struct row *row_of(int nr)
{
	static const struct row *by_number[1024];
	static bool filled;

	for (size_t i = 0; !filled && i < ARRAY_LEN(rows); i++)
		by_number[number_of(rows[i].name)] = &rows[i];
	filled = true;
	return by_number[nr];
}

/* What a variant does with a call, NULL: what the others do. */
static const char *variant_action(const char *name, unsigned flags)
{
	const struct rung_row *list = flags & SECCOMP_RUNG ? rung_rows : nest_rows;
	size_t n = flags & SECCOMP_RUNG ? ARRAY_LEN(rung_rows) : ARRAY_LEN(nest_rows);

	for (size_t i = 0; flags & (SECCOMP_RUNG | SECCOMP_NESTING) && i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return list[i].action;
	return NULL;
}

static bool is_given(const struct row *r, unsigned set, unsigned flags)
{
	return r->from == NESTING ? (flags & SECCOMP_NESTING) != 0 : (unsigned)r->from <= set && r->from < NESTING;
}

/* What the table says of a call whatever its arguments, 0 where a rule decides. */
static uint32_t expected(int nr, unsigned set, unsigned flags)
{
	const struct row *r = row_of(nr);
	uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

	if (!r)
		return NO_CALL;
	if (!is_given(r, set, flags))
		return r->otherwise == OTHERWISE_DENY ? deny : NO_CALL;

	const char *action = variant_action(r->name, flags);

	if (action)
		return strcmp(action, "DENY") == 0	 ? deny :
		       strcmp(action, "EPERM") == 0	 ? ERRNO(EPERM) :
		       strcmp(action, "EOPNOTSUPP") == 0 ? ERRNO(EOPNOTSUPP) :
		       strcmp(action, "ENOSYS") == 0	 ? NO_CALL :
							   0;
	return strcmp(r->rule, "any") == 0 ? ALLOW : 0;
}

static const unsigned all_flags[] = {
	0,
	SECCOMP_NESTING,
	SECCOMP_RUNG,
	SECCOMP_NO_LISTENER,
	SECCOMP_CLOSE_MEMORY,
	SECCOMP_NESTING | SECCOMP_NO_LISTENER | SECCOMP_CLOSE_MEMORY,
	SECCOMP_RUNG | SECCOMP_NO_LISTENER | SECCOMP_CLOSE_MEMORY,
};

#define EACH_PROGRAM                                      \
	for (unsigned set = 0; set < 3; set++)            \
		for (size_t f = 0; f < ARRAY_LEN(all_flags); f++) \
			for (unsigned flags = all_flags[f], once = (take(set, flags), 1); once; once = 0)

static void test_every_number(void **state)
{
	(void)state;
	EACH_PROGRAM {
		for (int nr = 0; nr < 1024; nr++) {
			uint32_t want = expected(nr, set, flags);
			uint32_t got = fate(nr, 0, 0, 0, 0);

			if (want && got != want)
				fail_msg("set %u flags %u number %d: %#x, not %#x", set, flags, nr, got, want);
			assert_int_not_equal(got, KILL);
			if (want == ALLOW)	/* no argument may change it */
				assert_int_equal(fate(nr, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX), ALLOW);
		}
		assert_int_equal(fate(1024, 0, 0, 0, 0), NO_CALL);
		assert_int_equal(fate(0x3fffffff, 0, 0, 0, 0), NO_CALL);
	}
}

/* Watching programs being started changes nothing else, and passes nothing to the listener that the set would not allow. */
static void test_watch_exec(void **state)
{
	static const unsigned variants[] = { 0, SECCOMP_NESTING, SECCOMP_RUNG, SECCOMP_CLOSE_MEMORY };
	static uint32_t plain[1024];
	size_t len;

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t f = 0; f < ARRAY_LEN(variants); f++) {
			take(set, variants[f]);
			for (int nr = 0; nr < 1024; nr++)
				plain[nr] = fate(nr, 0, 0, 0, 0);
			take(set, variants[f] | SECCOMP_WATCH_EXEC);
			for (int nr = 0; nr < 1024; nr++) {
				uint32_t got = fate(nr, 0, 0, 0, 0);
				bool starts = nr == SYS_execve || nr == SYS_execveat;

				if (starts)
					assert_int_equal(plain[nr], ALLOW);
				assert_int_equal(got, starts ? NOTIFY : plain[nr]);
			}
			assert_int_equal(fate(0x40000000 + SYS_execve, 0, 0, 0, 0), KILL);
		}
	assert_int_equal(seccomp_program(0, SECCOMP_NO_LISTENER | SECCOMP_WATCH_EXEC, code, SECCOMP_PROGRAM_MAX, &len), -EINVAL);
}

/* With graphics processors their drivers' requests pass, and nothing else changes. */
static void test_gpu_requests(void **state)
{
	static const struct {
		uint32_t request;
		bool passes;
	} requests[] = {
		{ 0xc04846d2, true }, { 0xc0206464, true }, { 0x80084b01, true }, { 0x30000001, true }, { 0x30000002, true }, { 1, true }, { 0x7f, true },
		{ 0, false }, { 0x80, false }, { 0x30000000, false }, { 0x30000003, false }, { 0x3fffffff, false }, { 0x4b47, false }, { 0x4601, false }, { 0x5412, false },
		{ 0x541c, false }, { 0x40086602, false }, { 0x401c5820, false }, { 0x40049409, false }, { 0xc0184547, false },
	};

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
			uint32_t plain;

			take(set, 0);
			plain = fate(SYS_ioctl, 0, requests[i].request, 0, 0);
			take(set, SECCOMP_GPUS);
			assert_int_equal(fate(SYS_ioctl, 0, requests[i].request, 0, 0), requests[i].passes ? ALLOW : plain);
			assert_int_equal(fate(SYS_mount, 0, requests[i].request, 0, 0), NOTIFY);
			assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, requests[i].request, 0, 0), KILL);
			if (requests[i].passes)
				assert_int_not_equal(plain, ALLOW);
		}
}

/* A wall that asks for it may ask what interfaces can do; its neighbours, and everything else, stay as they are. */
static void test_interface_requests(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (uint32_t request = 0x8900; request < 0x8a00; request++) {
			uint32_t plain;

			take(set, SECCOMP_NESTING);
			plain = fate(SYS_ioctl, 0, request, 0, 0);
			take(set, SECCOMP_NESTING | SECCOMP_INTERFACES);
			assert_int_equal(fate(SYS_ioctl, 0, request, 0, 0), request == 0x8946 ? ALLOW : plain);
			assert_int_equal(fate(SYS_bpf, 0, request, 0, 0), NOTIFY);
			assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, request, 0, 0), KILL);
			assert_true(request != 0x8946 || plain == ERRNO(ENOTTY));
		}
}

/* Whatever is watched, the listener is shown only what the program itself would allow with those arguments, and everything else is decided as without. */
static void test_watch_groups(void **state)
{
	static const struct {
		int nr;
		unsigned group;
		int flags, mode;
	} shown_rows[] = {
#define NO (-1)
#define WATCH(call, group, act, dir, path, flags, mode, from_dir, from) { SYS_##call, OBSERVE_##group, flags, mode },
#include "watched.def"
#undef WATCH
	};
	static const unsigned groups[] = { OBSERVE_WRITES, OBSERVE_WRITES | OBSERVE_READS, OBSERVE_NET, OBSERVE_LOOKS, OBSERVE_EXEC | OBSERVE_WRITES,
					   OBSERVE_EXEC | OBSERVE_WRITES | OBSERVE_READS | OBSERVE_LOOKS | OBSERVE_NET };
	static const uint64_t values[] = { 0, 1, 2, 0100, 0101, 020000000 | 0200000, 01000, 06000, 04755, 0644, 0x100000800, UINT64_MAX };
	static const unsigned variants[] = { 0, SECCOMP_NESTING };
	size_t len, shown = 0;

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t v = 0; v < ARRAY_LEN(variants) * ARRAY_LEN(groups); v++)
			for (size_t a = 0; a < ARRAY_LEN(values) * ARRAY_LEN(values); a++) {
				unsigned flags = variants[v % 2], wanted = groups[v / 2];
				uint64_t x = values[a % ARRAY_LEN(values)], y = values[a / ARRAY_LEN(values)];
				static uint32_t plain[512];

				take(set, flags);
				for (int nr = 0; nr < 512; nr++)
					plain[nr] = fate(nr, x, y, x, y);
				take(set, flags | SECCOMP_WATCH(wanted));
				for (int nr = 0; nr < 512; nr++) {
					uint32_t got = fate(nr, x, y, x, y);

					if (got == plain[nr])
						continue;
					assert_int_equal(got, NOTIFY);
					assert_int_equal(plain[nr], ALLOW);
					shown++;
				}
				for (size_t i = 0; i < ARRAY_LEN(shown_rows); i++)
					if (wanted & shown_rows[i].group && shown_rows[i].flags == NO && plain[shown_rows[i].nr] == ALLOW)
						assert_int_equal(fate(shown_rows[i].nr, x, y, x, y), NOTIFY);
			}
	assert_true(shown > 1000);
	assert_int_equal(seccomp_program(0, SECCOMP_RUNG | SECCOMP_WATCH(OBSERVE_WRITES), code, SECCOMP_PROGRAM_MAX, &len), -EINVAL);
	take(1, SECCOMP_WATCH(OBSERVE_WRITES));
	assert_int_equal(fate(SYS_openat, 0, 0, 0, 06777), ALLOW);	/* it reads: nobody looks, and a mode without O_CREAT is none */
	assert_int_equal(fate(SYS_openat, 0, 0, 0100, 0644), NOTIFY);
	take(1, SECCOMP_WATCH(OBSERVE_WRITES | OBSERVE_READS));
	assert_int_equal(fate(SYS_openat, 0, 0, 0, 06777), NOTIFY);
}

static void test_other_machines_die(void **state)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64, 0, UINT32_MAX,
					   AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_64BIT };

	(void)state;
	EACH_PROGRAM {
		for (int nr = 0; nr < 1024; nr++) {
			assert_int_equal(fate(nr | 0x40000000, 0, 0, 0, 0), KILL);
			assert_int_equal(fate(nr | (int)0x80000000, 0, 0, 0, 0), KILL);
			assert_int_equal(fate(nr | (int)0xc0000000, 0, 0, 0, 0), KILL);
			for (size_t i = 0; i < ARRAY_LEN(others); i++) {
				struct seccomp_data d = { nr, others[i], 0, { 0 } };

				assert_int_equal(run(&d), KILL);
			}
		}
		assert_int_equal(fate((int)0xfffffffe, 0, 0, 0, 0), KILL);
		assert_int_equal(fate(-1, 0, 0, 0, 0), NO_CALL);	/* a tracer skips a call */
	}
}

/* set-id bits in every mode argument, in every program */
static void test_set_id_modes(void **state)
{
	static const struct {
		long nr;
		unsigned mode, flags;	/* argument indices; flags 9: none */
	} calls[] = {
		{ SYS_chmod, 1, 9 }, { SYS_fchmod, 1, 9 }, { SYS_fchmodat, 2, 9 }, { NR_fchmodat2, 2, 9 },
		{ SYS_creat, 1, 9 }, { SYS_mkdir, 1, 9 }, { SYS_mkdirat, 2, 9 }, { SYS_mknod, 1, 9 },
		{ SYS_mknodat, 2, 9 }, { SYS_open, 2, 1 }, { SYS_openat, 3, 2 },
	};
	static const uint32_t creating[] = { O_CREAT, O_CREAT | O_EXCL | O_WRONLY, O_TMPFILE, O_TMPFILE & ~O_DIRECTORY,
					     O_CREAT | 0x80000000, 0xffffffff };
	static const uint32_t bad[] = { 04000, 02000, 06000, 04755, 02755, 07777, 0xffff, 0x14800, 0xffffffff, 0x80000800 };
	static const uint32_t good[] = { 0, 0644, 0755, 01777, 0x10000 | 0644 };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
			bool is_chmod = calls[c].nr == SYS_chmod || calls[c].nr == SYS_fchmod ||
					calls[c].nr == SYS_fchmodat || calls[c].nr == NR_fchmodat2;
			bool behalf = is_chmod && flags & SECCOMP_RUNG;

			for (size_t k = 0; k < (calls[c].flags == 9 ? 1 : ARRAY_LEN(creating)); k++) {
				uint64_t args[6] = { 0 };

				if (calls[c].flags != 9)
					args[calls[c].flags] = creating[k] | 0xabcd00000000ULL;
				for (size_t i = 0; i < ARRAY_LEN(bad); i++)
					assert_int_equal(by_int(calls[c].nr, calls[c].mode, bad[i], args),
							 behalf ? ERRNO(EPERM) : deny);
				for (size_t i = 0; i < ARRAY_LEN(good); i++)
					assert_int_equal(by_int(calls[c].nr, calls[c].mode, good[i], args),
							 behalf ? deny : ALLOW);
			}
		}
		/* without creation the mode is not looked at by anybody */
		assert_int_equal(fate(SYS_open, 0, O_RDWR | O_TRUNC, 07777, 0), ALLOW);
		assert_int_equal(fate(SYS_openat, 0, 0, O_RDONLY | O_DIRECTORY, 07777), ALLOW);
	}
}

static void test_device_nodes(void **state)
{
	static const uint32_t bad[] = { S_IFCHR, S_IFBLK | 0600, S_IFDIR, S_IFLNK, 0xf000, 0x10000 | S_IFCHR, S_IFBLK | 0xffff0000 };
	static const uint32_t good[] = { 0, 0644, S_IFREG | 0600, S_IFIFO | 0600, S_IFSOCK, 0xabc0000 | S_IFIFO };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			assert_int_equal(by_int(SYS_mknod, 1, bad[i], NULL), deny);
			assert_int_equal(by_int(SYS_mknodat, 2, bad[i], NULL), deny);
		}
		for (size_t i = 0; i < ARRAY_LEN(good); i++) {
			assert_int_equal(by_int(SYS_mknod, 1, good[i], NULL), ALLOW);
			assert_int_equal(by_int(SYS_mknodat, 2, good[i], NULL), ALLOW);
		}
	}
}

static void test_namespaces(void **state)
{
	static const uint32_t namespaces[] = { CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
					       CLONE_NEWPID, CLONE_NEWNET };
	static const uint32_t fine[] = { 17, 0, CLONE_VM | CLONE_VFORK | 17, 0x3d0f00 | CLONE_PIDFD, 0x80 | CLONE_THREAD, CLONE_IO };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NESTING	    ? ALLOW :
				flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) :
							      NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
			assert_int_equal(by_int(SYS_clone, 0, namespaces[i], NULL), deny);
			assert_int_equal(by_int(SYS_clone, 0, namespaces[i] | 17, NULL), deny);
			assert_int_equal(by_int(SYS_unshare, 0, namespaces[i] | CLONE_FS, NULL), deny);
		}
		for (size_t i = 0; i < ARRAY_LEN(fine); i++)
			assert_int_equal(by_int(SYS_clone, 0, fine[i], NULL), ALLOW);
		assert_int_equal(fate(SYS_unshare, CLONE_FILES | CLONE_FS, 0, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_unshare, 0x80, 0, 0, 0), deny);	/* CLONE_NEWTIME */
		assert_int_equal(fate(SYS_unshare, 1ULL << 32, 0, 0, 0), deny);
		assert_int_equal(fate(SYS_clone3, 0, 0, 0, 0), NO_CALL);
	}
}

static uint32_t socket_fate(uint32_t family, uint32_t type, uint32_t protocol)
{
	uint32_t r = fate(SYS_socket, family, type, protocol, 0);

	for (size_t i = 0; i < ARRAY_LEN(halves); i++)
		assert_int_equal(fate(SYS_socket, family | halves[i], type | halves[i], protocol | halves[i], 0), r);
	return r;
}

static void test_sockets(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		take(set, 0);
		uint32_t netlink = set ? ALLOW : ERRNO(EAFNOSUPPORT);

		assert_int_equal(socket_fate(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ALLOW);
		assert_int_equal(socket_fate(AF_UNIX, SOCK_DGRAM, 0), ALLOW);
		assert_int_equal(socket_fate(AF_UNIX, SOCK_RAW, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6), ALLOW);
		assert_int_equal(socket_fate(AF_INET6, SOCK_DGRAM, 17), ALLOW);
		assert_int_equal(socket_fate(AF_INET, SOCK_DGRAM, 1), ERRNO(EPROTONOSUPPORT));
		assert_int_equal(socket_fate(AF_INET, SOCK_STREAM, 262), ERRNO(EPROTONOSUPPORT));
		assert_int_equal(socket_fate(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1), NOTIFY);
		assert_int_equal(socket_fate(AF_INET6, SOCK_RAW, 58), NOTIFY);
		assert_int_equal(socket_fate(AF_INET, SOCK_SEQPACKET, 132), ERRNO(EINVAL));
		assert_int_equal(socket_fate(AF_INET, 10, 0), ERRNO(EINVAL));	/* SOCK_PACKET */
		assert_int_equal(socket_fate(AF_NETLINK, SOCK_RAW, 0), netlink);
		assert_int_equal(socket_fate(AF_NETLINK, SOCK_DGRAM, 0), netlink);
		for (uint32_t protocol = 1; protocol < 40; protocol++)
			assert_int_not_equal(socket_fate(AF_NETLINK, SOCK_RAW, protocol), ALLOW);
		assert_int_equal(socket_fate(AF_VSOCK, SOCK_STREAM, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_ALG, SOCK_SEQPACKET, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_PACKET, SOCK_RAW, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_XDP, SOCK_RAW, 0), NOTIFY);
		for (uint32_t family = 0; family < 64; family++)
			if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
				for (uint32_t type = 0; type < 16; type++)
					assert_int_not_equal(socket_fate(family, type, 0), ALLOW);
		assert_int_not_equal(socket_fate(UINT32_MAX, 1, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0), ERRNO(EAFNOSUPPORT));
		assert_int_equal(fate(SYS_socketpair, 0xf00000000 | AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, 30 /* TIPC */, SOCK_STREAM, 0, 0), ERRNO(EAFNOSUPPORT));
	}
}

static void test_ioctl(void **state)
{
	static const uint32_t refused[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, 0x40086602 /* FS_IOC_SETFLAGS */,
					    0x401c5820 /* FS_IOC_FSSETXATTR */ };
	static const uint32_t given[] = { TCGETS, TCSETS, TIOCGWINSZ, TIOCSWINSZ, FIONREAD, FIONBIO, FIOCLEX, FIOASYNC,
					  TIOCSPGRP, 0x40049409 /* FICLONE */, 0x802c542a /* TCGETS2 */ };
	static const uint32_t unknown[] = { 0x8916, 0x89f0, 0x8946, 0xb700, 0xb705, 0x50009401, 0xae01, 0x4b3a, 0x400454ca,
					    0, 1, 2, 0x54ff, 0xffffffff, 0x80000000 };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(refused); i++)
			assert_int_equal(by_int(SYS_ioctl, 1, refused[i], NULL), deny);
		for (size_t i = 0; i < ARRAY_LEN(given); i++)
			assert_int_equal(by_int(SYS_ioctl, 1, given[i], NULL), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
			assert_int_equal(by_int(SYS_ioctl, 1, unknown[i], NULL), ERRNO(ENOTTY));
		assert_int_equal(by_int(SYS_ioctl, 1, 0x8914 /* SIOCSIFFLAGS */, NULL),
				 flags & SECCOMP_NESTING ? ALLOW : ERRNO(ENOTTY));
		assert_int_equal(by_int(SYS_ioctl, 1, 0xb701 /* NS_GET_USERNS */, NULL),
				 flags & SECCOMP_NESTING ? ALLOW : ERRNO(ENOTTY));
		assert_int_equal(by_int(SYS_ioctl, 1, TIOCGPTPEER, NULL), set ? ALLOW : ERRNO(ENOTTY));
		assert_int_equal(by_int(SYS_ioctl, 1, 0x8912 /* SIOCGIFCONF */, NULL), set ? ALLOW : ERRNO(ENOTTY));
	}
}

static void test_prctl_and_personality(void **state)
{
	static const uint32_t given[] = { PR_SET_NAME, PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_READ,
					  PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_VMA, PR_SET_SECCOMP, PR_CAP_AMBIENT };
	static const uint32_t unknown[] = { 0, 57, PR_SET_IO_FLUSHER, PR_SET_SYSCALL_USER_DISPATCH, PR_SCHED_CORE,
					    67 /* memory merge */, 77, 0x7fffffff, 0xffffffff };
	static const uint32_t personalities[] = { 0x0400000 /* READ_IMPLIES_EXEC */, 0x0440000, 0x0100000 /* MMAP_PAGE_ZERO */,
						  0x0200000, 1, 0xfffffffe };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(given); i++)
			assert_int_equal(by_int(SYS_prctl, 0, given[i], NULL), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
			assert_int_equal(by_int(SYS_prctl, 0, unknown[i], NULL), ERRNO(EINVAL));
		assert_int_equal(by_int(SYS_prctl, 0, PR_SET_MM, NULL), deny);
		for (size_t i = 0; i < ARRAY_LEN(personalities); i++)
			assert_int_equal(by_int(SYS_personality, 0, personalities[i], NULL), deny);
		assert_int_equal(by_int(SYS_personality, 0, 0, NULL), set ? ALLOW : deny);
		assert_int_equal(by_int(SYS_personality, 0, 0xffffffff, NULL), set ? ALLOW : deny);
		assert_int_equal(by_int(SYS_personality, 0, 0x40000, NULL), set == SYSCALLS_BUILD ? ALLOW : deny);
	}
}

static void test_own_filters(void **state)
{
	(void)state;
	take(SYSCALLS_DEFAULT, 0);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0), ALLOW);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 0, 0), ALLOW);
	assert_int_equal(by_int(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, (uint64_t[6]){ 1 }), NOTIFY);
	assert_int_equal(by_int(SYS_seccomp, 1, 0xffffffff, (uint64_t[6]){ 1 }), NOTIFY);
	assert_int_equal(fate(SYS_seccomp, (5ULL << 32) | 1, 8, 0, 0), NOTIFY);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0, 0), ALLOW);
	assert_int_equal(fate(SYS_seccomp, 77, 0, 0, 0), ERRNO(EINVAL));
	take(SYSCALLS_STRICT, 0);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0), NO_CALL);
	take(SYSCALLS_DEFAULT, SECCOMP_NESTING);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 0), ALLOW);
}

static void test_memory(void **state)
{
	static const long closable[] = { SYS_memfd_create, SYS_shmget, SYS_msgget, SYS_semget };

	(void)state;
	EACH_PROGRAM {
		bool closed = flags & SECCOMP_CLOSE_MEMORY;

		assert_int_equal(by_int(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS, NULL), ALLOW);
		assert_int_equal(by_int(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, NULL), ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, MFD_CLOEXEC | MFD_ALLOW_SEALING, NULL), closed ? NO_CALL : ALLOW);
		assert_int_equal(by_int(SYS_memfd_create, 1, MFD_HUGETLB, NULL), ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, 0xfffffffe, NULL), ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, 0xffffffff, NULL), closed ? NO_CALL : ALLOW);
		if (set == 0 || flags & SECCOMP_RUNG)
			continue;
		for (size_t i = 1; i < ARRAY_LEN(closable); i++)
			assert_int_equal(fate(closable[i], 0, 4097, 0600, 0), closed ? NO_CALL : ALLOW);
		assert_int_equal(fate(SYS_shmget, 0, 4096, 0600, 0), closed && flags & SECCOMP_NESTING ? NO_CALL : ALLOW);
		assert_int_equal(fate(SYS_shmget, 0, 1ULL << 32, 0600, 0), closed ? NO_CALL : ALLOW);
		assert_int_equal(by_int(SYS_shmget, 2, 04000 | 0600, NULL), ERRNO(ENOMEM));
	}
}

static void test_scheduling(void **state)
{
	(void)state;
	take(SYSCALLS_DEFAULT, 0);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_OTHER, NULL), ALLOW);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_BATCH | SCHED_RESET_ON_FORK, NULL), ALLOW);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_FIFO, NULL), NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_RR | SCHED_RESET_ON_FORK, NULL), NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, 6, NULL), NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, 0x80000000, NULL), NOTIFY);
}

static void test_rung(void **state)
{
	static const uint64_t to[6] = { 3, 0, 0, 0, 0x7f0000001000, 16 }, high_to[6] = { 3, 0, 0, 0, 1ULL << 32, 16 };
	struct seccomp_data send = { SYS_sendto, AUDIT_ARCH_X86_64, 0, { 3, 0, 0, 0, 0, 0 } };

	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		take(set, SECCOMP_RUNG);
		for (uint32_t family = 0; family < 64; family++)
			for (uint32_t type = 0; type < 16; type++)
				assert_int_not_equal(socket_fate(family, type, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0), ALLOW);
		assert_int_not_equal(fate(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 0), ALLOW);
		assert_int_not_equal(fate(SYS_socketpair, AF_UNIX, SOCK_RAW, 0, 0), ALLOW);
		assert_int_equal(run(&send), ALLOW);
		memcpy(send.args, to, sizeof(to));
		assert_int_equal(run(&send), NOTIFY);
		memcpy(send.args, high_to, sizeof(to));
		assert_int_equal(run(&send), NOTIFY);
		memset(send.args, 0, sizeof(send.args));

		assert_int_equal(fate(SYS_prlimit64, 0, 7, 0x1000, 0), ALLOW);
		assert_int_equal(fate(SYS_prlimit64, 1234, 7, 0, 0x1000), ALLOW);	/* asks */
		assert_int_equal(fate(SYS_prlimit64, 1234, 7, 0x1000, 0), NOTIFY);
		assert_int_equal(fate(SYS_prlimit64, 1234, 7, 1ULL << 40, 0), NOTIFY);
		assert_int_equal(by_int(SYS_sched_setaffinity, 0, 0, NULL), ALLOW);
		assert_int_equal(by_int(SYS_sched_setaffinity, 0, 1, NULL), NOTIFY);
		assert_int_equal(fate(SYS_setpriority, 0, 0, 5, 0), ALLOW);
		assert_int_equal(fate(SYS_setpriority, 2 /* PRIO_USER */, 0, 19, 0), NOTIFY);
		assert_int_equal(fate(SYS_setpriority, 0, 77, 19, 0), NOTIFY);
		if (!set)
			continue;
		assert_int_equal(fate(SYS_ioprio_set, 1, 0, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_ioprio_set, 3, 0, 0, 0), NOTIFY);
		assert_int_equal(fate(SYS_sched_setscheduler, 0, SCHED_IDLE, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_sched_setscheduler, 5, SCHED_IDLE, 0, 0), NOTIFY);
		assert_int_equal(fate(SYS_sched_setscheduler, 0, SCHED_FIFO, 0, 0), NOTIFY);
	}
}

/* Switches change what they name and nothing else. */
static void test_switches(void **state)
{
	struct sock_filter plain[SECCOMP_PROGRAM_MAX];
	size_t len;

	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		take(set, 0);
		memcpy(plain, code, sizeof(code));
		len = code_len;
		take(set, SECCOMP_NO_LISTENER | SECCOMP_CLOSE_MEMORY);
		assert_int_equal(code_len, len);
		size_t closed = 0;

		for (size_t i = 0; i < len; i++) {
			assert_int_not_equal(code[i].k == NOTIFY && code[i].code == (BPF_RET | BPF_K), 1);
			if (memcmp(&plain[i], &code[i], sizeof(code[i])) == 0)
				continue;
			assert_int_equal(code[i].code, BPF_RET | BPF_K);
			if (plain[i].k == NOTIFY) {
				assert_int_equal(code[i].k, ERRNO(EPERM));
			} else {
				assert_int_equal(plain[i].k, ALLOW);
				assert_int_equal(code[i].k, NO_CALL);
				closed++;
			}
		}
		assert_true(closed > 0);
	}
	assert_int_equal(seccomp_program(3, 0, code, SECCOMP_PROGRAM_MAX, &len), -EINVAL);
	assert_int_equal(seccomp_program(0, SECCOMP_NESTING | SECCOMP_RUNG, code, SECCOMP_PROGRAM_MAX, &len), -EINVAL);
	assert_int_equal(seccomp_program(0, 0, code, 10, &len), -ENOSPC);
}

/* What a start pays for: the length, and the steps for each number. */
static void test_cost(void **state)
{
	(void)state;
	EACH_PROGRAM {
		unsigned total = 0, worst = 0;

		assert_in_range(code_len, 100, 272);
		for (int nr = 0; nr < 470; nr++) {
			fate(nr, 0, 0, 0, 0);
			total += steps;
			worst = steps > worst ? steps : worst;
		}
		assert_in_range(total / 470, 1, 15);
		assert_in_range(worst, 1, 32);
		fate(SYS_openat, 0, 0, O_RDONLY, 0);
		assert_in_range(steps, 1, 12);
	}
}

/* With nesting the agent has capabilities in namespaces of its own: none of them may reach the disk. */
static void test_nesting_keeps_file_capabilities_off(void **state)
{
	static const long calls[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, NR_setxattrat };

	(void)state;
	EACH_PROGRAM
		for (size_t i = 0; i < ARRAY_LEN(calls) && flags & SECCOMP_NESTING; i++)
			assert_int_not_equal(fate(calls[i], 0, 0, 0, 0), ALLOW);
}

/* Facts that must never change by accident. */
static void test_golden(void **state)
{
	static const long hot[] = { SYS_read, SYS_write, SYS_close, SYS_fstat, SYS_newfstatat, SYS_futex, SYS_execve, SYS_exit_group };
	static const long never[] = { SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
				      SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_kexec_load, SYS_init_module,
				      SYS_finit_module, SYS_reboot, SYS_swapon, SYS_iopl, SYS_ioperm, SYS_modify_ldt,
				      SYS_acct, SYS_quotactl, SYS_settimeofday, SYS_clock_settime, SYS_fanotify_init,
				      SYS_kcmp, SYS_vhangup, SYS_syslog, NR_file_setattr };
	static const long nesting[] = { SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_open_tree,
					SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
					NR_open_tree_attr };
	static const long absent[] = { SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_openat2,
				       SYS_clone3, SYS_memfd_secret };
	static const long debug[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd };

	(void)state;
	EACH_PROGRAM {
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(hot); i++)
			assert_int_equal(fate(hot[i], 0, 0, 0, 0), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(never); i++)
			assert_int_equal(fate(never[i], 0, 0, 0, 0), deny);
		for (size_t i = 0; i < ARRAY_LEN(absent); i++)
			assert_int_equal(fate(absent[i], 0, 0, 0, 0), NO_CALL);
		for (size_t i = 0; i < ARRAY_LEN(nesting); i++)
			assert_int_equal(fate(nesting[i], 0, 0, 0, 0), flags & SECCOMP_NESTING ? ALLOW : deny);
		for (size_t i = 0; i < ARRAY_LEN(debug); i++)
			assert_int_equal(fate(debug[i], 0, 0, 0, 0), set == SYSCALLS_BUILD ? ALLOW : deny);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_watch_exec),
		cmocka_unit_test(test_gpu_requests),
		cmocka_unit_test(test_interface_requests),
		cmocka_unit_test(test_watch_groups),  cmocka_unit_test(test_other_machines_die),
		cmocka_unit_test(test_set_id_modes),  cmocka_unit_test(test_device_nodes),
		cmocka_unit_test(test_namespaces),    cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_ioctl),	      cmocka_unit_test(test_prctl_and_personality),
		cmocka_unit_test(test_own_filters),   cmocka_unit_test(test_memory),
		cmocka_unit_test(test_scheduling),    cmocka_unit_test(test_rung),
		cmocka_unit_test(test_switches),      cmocka_unit_test(test_cost),
		cmocka_unit_test(test_golden),	      cmocka_unit_test(test_nesting_keeps_file_capabilities_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
