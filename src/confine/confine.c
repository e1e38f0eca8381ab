/*
 * A process locks itself up. In: its rows of tables/procs.def, and the files and the port that only
 * the caller knows. Out: a process that keeps its open descriptors and what the rows say, for good.
 * Runs once, in the process itself, before it reads a byte that an attacker may have written (the
 * supervisor: once it has started everything it will ever start).
 *
 * The order: ids and capabilities first, while they can be changed; then limits; no dumps and no
 * new privileges; Landlock, which needs the latter; the filter last, because nothing before it may
 * be refused. A kernel without Landlock is an error only where the row says MUST: the filters of
 * the other rows leave little or nothing that opens a file. Everything else must hold.
 *
 * The tables have no pointers, so that they cost a program that starts often no relocations.
 *
 * With a sanitizer, a process that has locked itself up is not searched for leaks at its end: that
 * takes a second process which traces it, and so rights that it no longer has. What a process leaks
 * before that is found in its unit tests and fuzzers.
 */
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define ID_NOBODY 65534
#define CAPABILITIES 64 /* more than any kernel has */
#define VALUES_MAX 4
#define X32_BIT 0x40000000

/* -- the tables */

#define BIT(p) (INT64_C(1) << (p))

__extension__ enum { /* wider than int */
#define PROC(id, ...) id = BIT(PROC_##id),
#define GROUP(id, procs) id = procs,
#include "procs.def"
};
_Static_assert(PROCS < 63, "a set of processes is an int64_t");

enum { NOBODY = 1, NO_CAPS = 2, NO_BOUNDING = 4, NO_DUMP = 8, NO_NEW_PRIVS = 16 };
enum { NO_LANDLOCK = 0, FILES = 1, BIND = 2, CONNECT = 4, SCOPE = 8, MUST = 16 };
enum { NO_FILTER, ALLOW_LIST, DENY_LIST };
enum { READ = CONFINE_READ, WRITE = CONFINE_WRITE, EXEC = CONFINE_EXEC };

static const struct {
	char name[20];
	uint8_t steps, landlock, filter;
} procs[] = {
#define PROC(id, name, program, steps, landlock, filter, help) { name, steps, landlock, filter },
#include "procs.def"
};

static const struct {
	int64_t procs;
	int capability;
} kept[] = {
#define KEEP(procs, name) { procs, CAP_##name },
#include "procs.def"
};

#define ONE 1ULL
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
static const struct {
	int64_t procs;
	int resource;
	rlim_t most;
} limits[] = {
#define LIMIT(procs, name, n, unit) { procs, RLIMIT_##name, (n)*unit },
#include "procs.def"
};

static const struct {
	int64_t procs;
	unsigned rights;
	char path[24];
} trees[] = {
#define TREE(procs, rights, path) { procs, rights, path },
#include "procs.def"
};

static const struct {
	int64_t procs;
	unsigned port;
} ports[] = {
#define PORT(procs, port) { procs, port },
#include "procs.def"
};

enum { ANY, ONE_OF, NONE_OF, NEVER };

static const struct call {
	int64_t procs;
	uint16_t nr;
	uint8_t how, argument, value_count;
	unsigned values[VALUES_MAX];
} calls[] = {
#define COUNT(...) (sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))
#define CALL(procs, name) { procs, SYS_##name, ANY, 0, 0, { 0 } },
#define CALL_IF(procs, name, argument, ...)                                                        \
	{ procs, SYS_##name, ONE_OF, argument, COUNT(__VA_ARGS__), { __VA_ARGS__ } },
#define CALL_NOT(procs, name, argument, bits) { procs, SYS_##name, NONE_OF, argument, 1, { bits } },
#define DENY(procs, name) { procs, SYS_##name, NEVER, 0, 0, { 0 } },
#if SANITIZED
#define CALL_ASAN(procs, name) { procs, SYS_##name, ANY, 0, 0, { 0 } },
#endif
#include "procs.def"
};

const char *confine_name(enum proc p)
{
	return procs[p].name;
}

static bool is_in(int64_t set, enum proc p)
{
	return set & BIT(p);
}

/* -- ids, capabilities, limits */

/* A container may have mapped only a few ids: then it stays root, without capabilities. */
static void become_nobody(void)
{
	if (getuid() == 0 && setgroups(0, NULL) == 0 &&
	    setresgid(ID_NOBODY, ID_NOBODY, ID_NOBODY) == 0)
		(void)!setresuid(ID_NOBODY, ID_NOBODY, ID_NOBODY);
}

static uint64_t kept_capabilities(enum proc p)
{
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (is_in(kept[i].procs, p))
			set |= 1ULL << kept[i].capability;
	return set;
}

/* An empty inheritable set empties the ambient one, too. */
static int drop_capabilities(enum proc p, struct ward_err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint64_t keep = kept_capabilities(p);
	bool known = true;

	for (unsigned cap = 0; procs[p].steps & NO_BOUNDING && known && cap < CAPABILITIES; cap++)
		known = keep & 1ULL << cap || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0;
	if (keep && syscall(SYS_capget, &header, data) < 0)
		return ward_fail_errno(e, "cannot read the capabilities of %s", procs[p].name);
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(keep >> (32 * i));
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return ward_fail_errno(e, "cannot drop the capabilities of %s", procs[p].name);
	return 0;
}

static int set_limits(enum proc p, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		__rlimit_resource_t resource = (__rlimit_resource_t)limits[i].resource;
		struct rlimit now;

		/* a sanitizer maps terabytes */
		if (!is_in(limits[i].procs, p) || (SANITIZED && resource == RLIMIT_DATA))
			continue;
		if (getrlimit(resource, &now) < 0)
			return ward_fail_errno(e, "cannot read the limits of %s", procs[p].name);
		if (now.rlim_max > limits[i].most)
			now.rlim_max = limits[i].most;
		now.rlim_cur = now.rlim_max;
		if (setrlimit(resource, &now) < 0)
			return ward_fail_errno(e, "cannot limit %s", procs[p].name);
	}
	return 0;
}

static int give_up_privileges(enum proc p, struct ward_err *e)
{
	if ((procs[p].steps & NO_DUMP && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) ||
	    (procs[p].steps & NO_NEW_PRIVS && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
		return ward_fail_errno(e, "%s cannot give up new privileges", procs[p].name);
	return 0;
}

/* -- Landlock. What came after the headers of Debian 12 is written down here. */

#define NET_BIND_TCP (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)
#define RULE_NET_PORT 2
#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* what there is of a file that is no directory */
#define OF_FILES                                                                                   \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_EXECUTE | 1ULL << 14 /* truncate */ | 1ULL << 15 /* ioctl */)

struct ruleset {
	uint64_t files, net, scoped;
};

/* The rights that each version of Landlock knows. */
static struct ruleset handled(enum proc p, long version)
{
	const unsigned wanted = procs[p].landlock;

	return (struct ruleset){
		.files = version >= 5   ? 0xffff
			 : version >= 3 ? 0x7fff
			 : version == 2 ? 0x3fff
					: 0x1fff,
		.net = version < 4 ? 0
				   : (wanted & BIND ? NET_BIND_TCP : 0) |
					     (wanted & CONNECT ? NET_CONNECT_TCP : 0),
		.scoped = version >= 6 && wanted & SCOPE ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0,
	};
}

static int allow_tree(int rules_fd, const struct confine_tree *tree, uint64_t all)
{
	auto_fd opened = tree->path ? open(tree->path, O_PATH | O_CLOEXEC) : -1;
	struct landlock_path_beneath_attr rule = { .parent_fd = tree->path ? opened : tree->fd };
	struct stat st;

	if (tree->path && opened < 0)
		return 0;
	if (fstat(rule.parent_fd, &st) < 0)
		return -errno;
	if (tree->rights & CONFINE_READ)
		rule.allowed_access |= READS;
	if (tree->rights & CONFINE_WRITE)
		rule.allowed_access |= all & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE;
	if (tree->rights & CONFINE_EXEC)
		rule.allowed_access |= LANDLOCK_ACCESS_FS_EXECUTE;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	return syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

static int allow_port(int rules_fd, unsigned port)
{
	const struct {
		uint64_t allowed, port;
	} rule = { NET_CONNECT_TCP, port };

	return syscall(SYS_landlock_add_rule, rules_fd, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

static int add_rules(int rules_fd, enum proc p, const struct confine_own *own,
		     const struct ruleset *set)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(trees) && r == 0; i++)
		if (is_in(trees[i].procs, p))
			r = allow_tree(rules_fd,
				       &(struct confine_tree){ trees[i].path, -1, trees[i].rights },
				       set->files);
	for (size_t i = 0; i < own->tree_count && r == 0; i++)
		r = allow_tree(rules_fd, &own->trees[i], set->files);
	if (!(set->net & NET_CONNECT_TCP))
		return r;
	for (size_t i = 0; i < ARRAY_LEN(ports) && r == 0; i++)
		if (is_in(ports[i].procs, p))
			r = allow_port(rules_fd, ports[i].port);
	return r == 0 && own->port ? allow_port(rules_fd, own->port) : r;
}

/* The first version refuses every link and rename across directories: of use only to a process that
 * has no file at all. */
static long oldest_version(enum proc p, const struct confine_own *own)
{
	bool has_files = own->tree_count > 0;

	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		has_files |= is_in(trees[i].procs, p);
	return has_files ? 2 : 1;
}

static int restrict_files(enum proc p, const struct confine_own *own, struct ward_err *e)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset set = handled(p, version);
	auto_fd fd = -1;
	int r;

	if (version < oldest_version(p, own))
		return procs[p].landlock & MUST
			       ? ward_fail(e, EOPNOTSUPP,
					   "%s cannot restrict itself with Landlock: the kernel "
					   "has none",
					   procs[p].name)
			       : 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &set,
			  version >= 6   ? sizeof(set)
			  : version >= 4 ? 16
					 : 8,
			  0);
	r = fd < 0 ? -errno : add_rules(fd, p, own, &set);
	if (r == 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	errno = -r;
	return r < 0 ? ward_fail_errno(e, "%s cannot restrict itself with Landlock", procs[p].name)
		     : 0;
}

/* -- the filter */

#define STATEMENT(code, k) ((struct sock_filter)BPF_STMT(code, k))
#define JUMP(test, k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (test) | BPF_K, k, yes, no))
#define LOAD(field)                                                                                \
	STATEMENT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define RETURN(what) STATEMENT(BPF_RET | BPF_K, what)
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define CALL_LENGTH_MAX (2 * VALUES_MAX + 3)

static size_t add_call(struct sock_filter *code, size_t n, const struct call *c)
{
	if (c->how == ANY || c->how == NEVER) {
		code[n++] = JUMP(BPF_JEQ, c->nr, 0, 1);
		code[n++] = RETURN(c->how == ANY ? SECCOMP_RET_ALLOW : REFUSED);
		return n;
	}
	/* the argument takes the place of the number, so the row has the last word on its call */
	code[n++] = JUMP(BPF_JEQ, c->nr, 0, (uint8_t)(2 * c->value_count + 2));
	code[n++] = LOAD(args[c->argument]);
	for (unsigned i = 0; i < c->value_count; i++) {
		code[n++] = c->how == ONE_OF ? JUMP(BPF_JEQ, c->values[i], 0, 1)
					     : JUMP(BPF_JSET, c->values[i], 1, 0);
		code[n++] = RETURN(SECCOMP_RET_ALLOW);
	}
	code[n++] = RETURN(REFUSED);
	return n;
}

int confine_filter(enum proc p, struct sock_filter *code)
{
	size_t n = 0;

	if (procs[p].filter == NO_FILTER)
		return 0;
	code[n++] = LOAD(arch);
	code[n++] = JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
	code[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	code[n++] = LOAD(nr);
	code[n++] = JUMP(BPF_JGE, X32_BIT, 0, 1);
	code[n++] = RETURN(REFUSED);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (!is_in(calls[i].procs, p))
			continue;
		if (n + CALL_LENGTH_MAX + 1 > CONFINE_FILTER_MAX)
			return -E2BIG;
		n = add_call(code, n, &calls[i]);
	}
	code[n++] = RETURN(procs[p].filter == DENY_LIST ? SECCOMP_RET_ALLOW : REFUSED);
	return (int)n;
}

static int set_filter(enum proc p, struct ward_err *e)
{
	struct sock_filter code[CONFINE_FILTER_MAX];
	struct sock_fprog program = { .filter = code };
	int n = confine_filter(p, code);

	if (n < 0)
		return ward_fail(e, -n, "the filter of %s is too long", procs[p].name);
	program.len = (unsigned short)n;
	if (n && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return ward_fail_errno(e, "cannot set the filter of %s", procs[p].name);
	return 0;
}

/* -- all of it, in order */

#if SANITIZED
static bool locked_up;

/* LeakSanitizer calls it at the end of every program that has this file. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	return locked_up;
}
#endif

enum step { IDS, CAPS, LIMITS, PRIVILEGES, LANDLOCK, FILTER, STEPS };

static int take_step(enum step step, enum proc p, const struct confine_own *own, struct ward_err *e)
{
	switch (step) {
	case IDS:
		if (procs[p].steps & NOBODY)
			become_nobody();
		return 0;
	case CAPS:
		return procs[p].steps & NO_CAPS ? drop_capabilities(p, e) : 0;
	case LIMITS:
		return set_limits(p, e);
	case PRIVILEGES:
		return give_up_privileges(p, e);
	case LANDLOCK:
		return procs[p].landlock && !own->no_landlock ? restrict_files(p, own, e) : 0;
	case FILTER:
		return own->no_filter ? 0 : set_filter(p, e);
	case STEPS:
		break;
	}
	return 0;
}

int confine_enter(enum proc p, const struct confine_own *own, struct ward_err *e)
{
	static const struct confine_own nothing = { 0 };
	struct ward_err later;
	int result = 0;

#if SANITIZED
	locked_up = procs[p].steps & NO_DUMP;
#endif
	for (enum step step = 0; step < STEPS; step++) {
		int r = take_step(step, p, own ? own : &nothing, result < 0 ? &later : e);

		if (result == 0)
			result = r;
	}
	return result;
}
