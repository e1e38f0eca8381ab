/*
 * Landlock.
 *
 * In: the version of Landlock that the host has, paths with rights, and what is to be closed. Out:
 * a domain around the calling process that nothing can take off. Runs in the child, after the new
 * root is in place and before seccomp, with no rights but its own; the rules may be made by another
 * process of the same root, beside it. Both share the supervisor's memory, so there is no libc
 * here.
 *
 * Everything that this version of Landlock can refuse is handled, so what no rule grants is
 * refused. It does not cover chmod, chown, times, attributes, stat and the like: the mounts do
 * (native), or the filter and the supervisor (the level without namespaces). Programs started later
 * are not logged by the kernel's audit: that is the default for what comes after an exec, and an
 * agent must not fill the host's log.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

#include "base/raw.h"
#include "engine/native/landlock.h"

/* linux/landlock.h of Debian 12 ends at ABI 2. */
#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR (1ULL << 6)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_MAKE_SOCK (1ULL << 9)
#define FS_MAKE_FIFO (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM (1ULL << 12)
#define FS_REFER (1ULL << 13)     /* ABI 2 */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define NET_BIND_TCP (1ULL << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)

#define FS_ABI1 (FS_REFER - 1)
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define RULE_PATH_BENEATH 1

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static const struct {
	unsigned right;
	uint64_t access;
} rights_table[] = {
	{ LANDLOCK_READ, FS_READ_FILE | FS_READ_DIR },
	{ LANDLOCK_EXECUTE, FS_EXECUTE },
	{ LANDLOCK_MODIFY, FS_WRITE_FILE | FS_TRUNCATE },
	{ LANDLOCK_CREATE, FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |
				   FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER },
	{ LANDLOCK_DEVICE, FS_IOCTL_DEV },
};

static uint64_t handled_files(int abi)
{
	return FS_ABI1 | FS_REFER | (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static uint64_t access_of(unsigned rights)
{
	uint64_t access = 0;

	for (size_t i = 0; i < ARRAY_LEN(rights_table); i++)
		if (rights & rights_table[i].right)
			access |= rights_table[i].access;
	return access;
}

/* A rule on a file may only name what can be done to files, and the kernel says EINVAL otherwise.
 */
static int add_rule(int ruleset_fd, int fd, uint64_t access)
{
	struct path_attr attr = { access, fd };
	long r = raw_call(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0);

	if (r == -EINVAL && (access & FS_OF_FILES)) {
		attr.allowed = access & FS_OF_FILES;
		r = raw_call(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0);
	}
	return (int)r;
}

static int add_path(int ruleset_fd, const struct landlock_path *p, uint64_t handled)
{
	unsigned rights = p->rights     ? p->rights
			  : p->writable ? LANDLOCK_FULL
					: LANDLOCK_READ | LANDLOCK_EXECUTE;
	uint64_t access = access_of(rights) & handled;

	if (!access)
		return 0;

	long fd = raw_call(SYS_openat, AT_FDCWD, p->path, O_PATH | O_CLOEXEC, 0);

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES)
		return 0; /* nothing is granted */
	if (fd < 0)
		return (int)fd;

	int r = add_rule(ruleset_fd, (int)fd, access);

	raw_call(SYS_close, fd);
	return r;
}

int landlock_rules(int abi, const struct landlock_path *paths, size_t n, unsigned flags,
		   int *ret_fd)
{
	bool files = !(flags & LANDLOCK_SCOPES_ONLY), tcp = flags & LANDLOCK_NO_TCP;
	struct ruleset_attr attr = {
		.handled_fs = files && abi >= 2 ? handled_files(abi) : 0,
		.handled_net = tcp && abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
	};

	if (flags & LANDLOCK_MUST &&
	    ((files && !attr.handled_fs) || (tcp && !attr.handled_net) || !attr.scoped))
		return -EOPNOTSUPP;
	*ret_fd = -1;
	if (!attr.handled_fs && !attr.handled_net && !attr.scoped)
		return 0;

	/* an older kernel takes a longer structure too, as long as what it does not know is 0 */
	long fd = raw_call(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (fd < 0)
		return (int)fd;

	for (size_t i = 0; attr.handled_fs && i < n; i++) {
		int r = add_path((int)fd, &paths[i], attr.handled_fs);

		if (r < 0) {
			raw_call(SYS_close, fd);
			return r;
		}
	}
	*ret_fd = (int)fd;
	return 0;
}

int landlock_enter(int rules_fd)
{
	long r = rules_fd < 0 ? 0 : raw_call(SYS_landlock_restrict_self, rules_fd, 0);

	if (rules_fd >= 0)
		raw_call(SYS_close, rules_fd);
	return (int)r;
}

int landlock_apply(int abi, const struct landlock_path *paths, size_t n, unsigned flags)
{
	int rules_fd, r = landlock_rules(abi, paths, n, flags, &rules_fd);

	return r < 0 ? r : landlock_enter(rules_fd);
}
