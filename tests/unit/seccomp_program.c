/*
 * The filter as data: the interpreter beside this file runs every program of
 * engine/native/seccomp.c for every number and for each row of tables/syscalls.def.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/observe.h"
#include "policy/policy.h"
#include "seccomp_interpreter.h"

enum from { STRICT, DEFAULT, BUILD, NESTING, NEVER };
enum otherwise { OTHERWISE_DENY, OTHERWISE_ENOSYS };

struct row {
	const char *name, *rule;
	enum from from;
	enum otherwise otherwise;
};

static const struct row rows[] = {
#define CALL(call, first, other, by, why) { #call, #by, first, OTHERWISE_##other },
#include "syscalls.def"
};

static const struct level_row {
	const char *name, *action;
} level_rows[] = {
#define LANDLOCK(call, act, rule) { #call, #act },
#include "syscalls.def"
}, nest_rows[] = {
#define NEST(call, act, rule) { #call, #act },
#include "syscalls.def"
};

static const struct {
	const char *name;
	int nr;
} numbers[] = {
#include "seccomp-numbers.h"
};

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
	const struct level_row *list = flags & SECCOMP_LANDLOCK ? level_rows : nest_rows;
	size_t n = flags & SECCOMP_LANDLOCK ? ARRAY_LEN(level_rows) : ARRAY_LEN(nest_rows);

	for (size_t i = 0; flags & (SECCOMP_LANDLOCK | SECCOMP_NESTING) && i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return list[i].action;
	return NULL;
}

static bool is_given(const struct row *r, unsigned set, unsigned flags)
{
	return r->from == NESTING ? (flags & SECCOMP_NESTING) != 0
				  : (unsigned)r->from <= set && r->from < NESTING;
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
		return strcmp(action, "DENY") == 0         ? deny
		       : strcmp(action, "EPERM") == 0      ? ERRNO(EPERM)
		       : strcmp(action, "EOPNOTSUPP") == 0 ? ERRNO(EOPNOTSUPP)
		       : strcmp(action, "ENOSYS") == 0     ? NO_CALL
							   : 0;
	return strcmp(r->rule, "any") == 0 ? ALLOW : 0;
}

static void test_every_number(void **state)
{
	(void)state;
	EACH_PROGRAM
	{
		for (int nr = 0; nr < 1024; nr++) {
			uint32_t want = expected(nr, set, flags);
			uint32_t got = fate(nr, 0, 0, 0, 0);

			if (want && got != want)
				fail_msg("set %u flags %u number %d: %#x, not %#x", set, flags, nr,
					 got, want);
			assert_int_not_equal(got, KILL);
			if (want == ALLOW) /* no argument may change it */
				assert_int_equal(
					fate(nr, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX),
					ALLOW);
		}
		assert_int_equal(fate(1024, 0, 0, 0, 0), NO_CALL);
		assert_int_equal(fate(0x3fffffff, 0, 0, 0, 0), NO_CALL);
	}
}

/* Watching programs being started changes nothing else, and passes nothing to the listener that the
 * set would not allow. */
static void test_watch_exec(void **state)
{
	static const unsigned variants[] = { 0, SECCOMP_NESTING, SECCOMP_LANDLOCK,
					     SECCOMP_CLOSE_MEMORY };
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
				assert_int_equal(got, starts ? SECCOMP_RET_SHOWN : plain[nr]);
			}
			assert_int_equal(fate(0x40000000 + SYS_execve, 0, 0, 0, 0), KILL);
		}
	assert_int_equal(seccomp_program(0, SECCOMP_NO_LISTENER | SECCOMP_WATCH_EXEC, code,
					 SECCOMP_PROGRAM_MAX, &len),
			 -EINVAL);
}

/* Whatever is watched, the listener is shown only what the program itself would allow with those
 * arguments, and everything else is decided as without. */
static void test_watch_groups(void **state)
{
	static const struct {
		int nr;
		unsigned group;
		int flags, mode;
	} shown_rows[] = {
#define NO (-1)
#define WATCH(call, group, act, dir, path, flags, mode, from_dir, from)                            \
	{ SYS_##call, OBSERVE_##group, flags, mode },
#include "watched.def"
	};
	static const unsigned groups[] = { OBSERVE_WRITES,
					   OBSERVE_WRITES | OBSERVE_READS,
					   OBSERVE_NET,
					   OBSERVE_LOOKS,
					   OBSERVE_EXEC | OBSERVE_WRITES,
					   OBSERVE_EXEC | OBSERVE_WRITES | OBSERVE_READS |
						   OBSERVE_LOOKS | OBSERVE_NET };
	static const uint64_t values[] = { 0,     1,           2,
					   0100,  0101,        020000000 | 0200000,
					   01000, 06000,       04755,
					   0644,  0x100000800, UINT64_MAX };
	static const unsigned variants[] = { 0, SECCOMP_NESTING };
	size_t len, shown = 0;

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t v = 0; v < ARRAY_LEN(variants) * ARRAY_LEN(groups); v++)
			for (size_t a = 0; a < ARRAY_LEN(values) * ARRAY_LEN(values); a++) {
				unsigned flags = variants[v % 2], wanted = groups[v / 2];
				uint64_t x = values[a % ARRAY_LEN(values)],
					 y = values[a / ARRAY_LEN(values)];
				static uint32_t plain[512];

				take(set, flags);
				for (int nr = 0; nr < 512; nr++)
					plain[nr] = fate(nr, x, y, x, y);
				take(set, flags | SECCOMP_WATCH(wanted));
				for (int nr = 0; nr < 512; nr++) {
					uint32_t got = fate(nr, x, y, x, y);

					if (got == plain[nr])
						continue;
					assert_int_equal(got, SECCOMP_RET_SHOWN);
					assert_int_equal(plain[nr], ALLOW);
					shown++;
				}
				for (size_t i = 0; i < ARRAY_LEN(shown_rows); i++)
					if (wanted & shown_rows[i].group &&
					    shown_rows[i].flags == NO &&
					    plain[shown_rows[i].nr] == ALLOW)
						assert_int_equal(fate(shown_rows[i].nr, x, y, x, y),
								 SECCOMP_RET_SHOWN);
			}
	assert_true(shown > 1000);
	assert_int_equal(seccomp_program(0, SECCOMP_LANDLOCK | SECCOMP_WATCH(OBSERVE_WRITES), code,
					 SECCOMP_PROGRAM_MAX, &len),
			 -EINVAL);
	take(1, SECCOMP_WATCH(OBSERVE_WRITES));
	/* it reads: nobody looks, and a mode without O_CREAT is none */
	assert_int_equal(fate(SYS_openat, 0, 0, 0, 06777), ALLOW);
	assert_int_equal(fate(SYS_openat, 0, 0, 0100, 0644), SECCOMP_RET_SHOWN);
	take(1, SECCOMP_WATCH(OBSERVE_WRITES | OBSERVE_READS));
	assert_int_equal(fate(SYS_openat, 0, 0, 0, 06777), SECCOMP_RET_SHOWN);
}

static void test_other_machines_die(void **state)
{
	static const uint32_t others[] = {
		AUDIT_ARCH_I386,    AUDIT_ARCH_ARM,
		AUDIT_ARCH_AARCH64, 0,
		UINT32_MAX,         AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_64BIT
	};

	(void)state;
	EACH_PROGRAM
	{
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
		assert_int_equal(fate(-1, 0, 0, 0, 0), NO_CALL); /* a tracer skips a call */
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
			assert_int_not_equal(
				code[i].k == NOTIFY && code[i].code == (BPF_RET | BPF_K), 1);
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
	assert_int_equal(seccomp_program(0, SECCOMP_NESTING | SECCOMP_LANDLOCK, code,
					 SECCOMP_PROGRAM_MAX, &len),
			 -EINVAL);
	assert_int_equal(seccomp_program(0, 0, code, 10, &len), -ENOSPC);
}

/* What a start pays for: the length, and the steps for each number. */
static void test_cost(void **state)
{
	(void)state;
	EACH_PROGRAM
	{
		unsigned total = 0, worst = 0;

		assert_in_range(code_len, 100, 284);
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

/* With nesting the agent has capabilities in namespaces of its own: none of them may reach the
 * disk. */
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
	static const long hot[] = { SYS_read,       SYS_write, SYS_close,  SYS_fstat,
				    SYS_newfstatat, SYS_futex, SYS_execve, SYS_exit_group };
	static const long never[] = { SYS_bpf,
				      SYS_perf_event_open,
				      SYS_userfaultfd,
				      SYS_keyctl,
				      SYS_add_key,
				      SYS_request_key,
				      SYS_open_by_handle_at,
				      SYS_name_to_handle_at,
				      SYS_kexec_load,
				      SYS_init_module,
				      SYS_finit_module,
				      SYS_reboot,
				      SYS_swapon,
				      SYS_iopl,
				      SYS_ioperm,
				      SYS_modify_ldt,
				      SYS_acct,
				      SYS_quotactl,
				      SYS_settimeofday,
				      SYS_clock_settime,
				      SYS_fanotify_init,
				      SYS_kcmp,
				      SYS_vhangup,
				      SYS_syslog,
				      NR_file_setattr };
	static const long nesting[] = { SYS_mount,        SYS_umount2, SYS_pivot_root,
					SYS_chroot,       SYS_setns,   SYS_open_tree,
					SYS_move_mount,   SYS_fsopen,  SYS_fsconfig,
					SYS_fsmount,      SYS_fspick,  SYS_mount_setattr,
					NR_open_tree_attr };
	static const long absent[] = {
		SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
		SYS_openat2,        SYS_clone3,         SYS_memfd_secret
	};
	static const long debug[] = { SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
				      SYS_pidfd_getfd };

	(void)state;
	EACH_PROGRAM
	{
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(hot); i++)
			assert_int_equal(fate(hot[i], 0, 0, 0, 0), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(never); i++)
			assert_int_equal(fate(never[i], 0, 0, 0, 0), deny);
		for (size_t i = 0; i < ARRAY_LEN(absent); i++)
			assert_int_equal(fate(absent[i], 0, 0, 0, 0), NO_CALL);
		for (size_t i = 0; i < ARRAY_LEN(nesting); i++)
			assert_int_equal(fate(nesting[i], 0, 0, 0, 0),
					 flags & SECCOMP_NESTING ? ALLOW : deny);
		for (size_t i = 0; i < ARRAY_LEN(debug); i++)
			assert_int_equal(fate(debug[i], 0, 0, 0, 0),
					 set == SYSCALLS_BUILD ? ALLOW : deny);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_watch_exec),
		cmocka_unit_test(test_watch_groups),
		cmocka_unit_test(test_other_machines_die),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_nesting_keeps_file_capabilities_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
