/*
 * The filter's rules about arguments: hostile encodings of each argument that a rule looks at, run
 * through every program by the interpreter beside this file.
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "observe/observe.h"
#include "policy/policy.h"
#include "seccomp_interpreter.h"

/* With graphics processors their drivers' requests pass, and nothing else changes. */
static void test_gpu_requests(void **state)
{
	static const struct {
		uint32_t request;
		bool passes;
	} requests[] = {
		{ 0xc04846d2, true },  { 0xc0206464, true },  { 0x80084b01, true },
		{ 0x30000001, true },  { 0x30000002, true },  { 1, true },
		{ 0x7f, true },        { 0, false },          { 0x80, false },
		{ 0x30000000, false }, { 0x30000003, false }, { 0x3fffffff, false },
		{ 0x4b47, false },     { 0x4601, false },     { 0x5412, false },
		{ 0x541c, false },     { 0x40086602, false }, { 0x401c5820, false },
		{ 0x40049409, false }, { 0xc0184547, false },
	};

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
			uint32_t plain;

			take(set, 0);
			plain = fate(SYS_ioctl, 0, requests[i].request, 0, 0);
			take(set, SECCOMP_GPUS);
			assert_int_equal(fate(SYS_ioctl, 0, requests[i].request, 0, 0),
					 requests[i].passes ? ALLOW : plain);
			assert_int_equal(fate(SYS_mount, 0, requests[i].request, 0, 0), NOTIFY);
			assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, requests[i].request, 0, 0),
					 KILL);
			if (requests[i].passes)
				assert_int_not_equal(plain, ALLOW);
		}
}

/* A wall that asks for it may ask what interfaces can do; its neighbours, and everything else, stay
 * as they are. */
static void test_interface_requests(void **state)
{
	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (uint32_t request = 0x8900; request < 0x8a00; request++) {
			uint32_t plain;

			take(set, SECCOMP_NESTING);
			plain = fate(SYS_ioctl, 0, request, 0, 0);
			take(set, SECCOMP_NESTING | SECCOMP_INTERFACES);
			assert_int_equal(fate(SYS_ioctl, 0, request, 0, 0),
					 request == 0x8946 ? ALLOW : plain);
			assert_int_equal(fate(SYS_bpf, 0, request, 0, 0), NOTIFY);
			assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, request, 0, 0), KILL);
			assert_true(request != 0x8946 || plain == ERRNO(ENOTTY));
			take(set, SECCOMP_NESTING | SECCOMP_INTERFACES | SECCOMP_GPUS);
			assert_int_equal(fate(SYS_ioctl, 0, request, 0, 0),
					 request == 0x8946 ? ALLOW : plain);
			assert_int_equal(fate(SYS_ioctl, 0, 0xc04846d2, 0, 0), ALLOW);
		}
}

/* A virtual machine's runner may ask KVM for what a machine needs, and for nothing that only others
 * need: nitro enclaves, Xen, encrypted memory, nesting, devices of the kernel's own. */
static void test_kvm_requests(void **state)
{
	static const uint8_t closed[][2] = { { 0x20, 0x3f }, { 0x7a, 0x7a }, { 0xba, 0xbf },
					     { 0xc8, 0xcb }, { 0xd0, 0xd0 }, { 0xd2, 0xd2 },
					     { 0xd4, 0xd4 }, { 0xe0, 0xe1 } };
	static const uint32_t directions[] = { 0, 0x40080000, 0x80080000, 0xc0080000, 0xffff0000 };

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (uint32_t low = 0xadf0; low < 0xaf10; low++)
			for (size_t i = 0; i < ARRAY_LEN(directions); i++) {
				uint32_t request = directions[i] | low, plain;
				bool open = low >> 8 == 0xae;

				for (size_t k = 0; k < ARRAY_LEN(closed); k++)
					open &= (low & 0xff) < closed[k][0] ||
						(low & 0xff) > closed[k][1];
				take(set, 0);
				plain = fate(SYS_ioctl, 0, request, 0, 0);
				assert_int_not_equal(plain, ALLOW);
				take(set, SECCOMP_KVM);
				assert_int_equal(fate(SYS_ioctl, 0, request, 0, 0),
						 open ? ALLOW : plain);
				assert_int_equal(fate(SYS_mount, 0, request, 0, 0), NOTIFY);
				assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, request, 0, 0),
						 KILL);
			}
}

/* gVisor's kernel may ask KVM for what it asks, and for nothing else. */
static void test_kvm_sentry_requests(void **state)
{
	static const uint8_t open[] = {
		0x01, 0x03, 0x04, 0x05, 0x41, 0x46, 0x47, 0x80, 0x81, 0x82,
		0x83, 0x84, 0x86, 0x89, 0x8b, 0x90, 0x9a, 0xa2, 0xa3, 0xe1
	};

	(void)state;
	for (unsigned set = 0; set < 3; set++)
		for (uint32_t low = 0xadf0; low < 0xaf10; low++) {
			bool passes = false;
			uint32_t plain;

			for (size_t k = 0; k < ARRAY_LEN(open); k++)
				passes |= low == 0xae00U + open[k];
			take(set, SECCOMP_NESTING);
			plain = fate(SYS_ioctl, 0, low, 0, 0);
			assert_int_not_equal(plain, ALLOW);
			take(set, SECCOMP_NESTING | SECCOMP_KVM_SENTRY);
			assert_int_equal(fate(SYS_ioctl, 0, low, 0, 0), passes ? ALLOW : plain);
			assert_int_equal(fate(SYS_ioctl, 0, 0x40080000 | low, 0, 0),
					 passes ? ALLOW : plain);
			assert_int_equal(fate(SYS_bpf, 0, low, 0, 0), NOTIFY);
			assert_int_equal(fate(0x40000000 + SYS_ioctl, 0, low, 0, 0), KILL);
		}
}

/* set-id bits in every mode argument, in every program */
static void test_set_id_modes(void **state)
{
	static const struct {
		long nr;
		unsigned mode, flags; /* argument indices; flags 9: none */
	} calls[] = {
		{ SYS_chmod, 1, 9 },    { SYS_fchmod, 1, 9 }, { SYS_fchmodat, 2, 9 },
		{ NR_fchmodat2, 2, 9 }, { SYS_creat, 1, 9 },  { SYS_mkdir, 1, 9 },
		{ SYS_mkdirat, 2, 9 },  { SYS_mknod, 1, 9 },  { SYS_mknodat, 2, 9 },
		{ SYS_open, 2, 1 },     { SYS_openat, 3, 2 },
	};
	static const uint32_t creating[] = { O_CREAT,
					     O_CREAT | O_EXCL | O_WRONLY,
					     O_TMPFILE,
					     O_TMPFILE & ~O_DIRECTORY,
					     O_CREAT | 0x80000000,
					     0xffffffff };
	static const uint32_t bad[] = { 04000, 02000,  06000,   04755,      02755,
					07777, 0xffff, 0x14800, 0xffffffff, 0x80000800 };
	static const uint32_t good[] = { 0, 0644, 0755, 01777, 0x10000 | 0644 };

	(void)state;
	EACH_PROGRAM
	{
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
			bool is_chmod = calls[c].nr == SYS_chmod || calls[c].nr == SYS_fchmod ||
					calls[c].nr == SYS_fchmodat || calls[c].nr == NR_fchmodat2;
			bool brokered = is_chmod && flags & SECCOMP_LANDLOCK;

			for (size_t k = 0; k < (calls[c].flags == 9 ? 1 : ARRAY_LEN(creating));
			     k++) {
				uint64_t args[6] = { 0 };

				if (calls[c].flags != 9)
					args[calls[c].flags] = creating[k] | 0xabcd00000000ULL;
				for (size_t i = 0; i < ARRAY_LEN(bad); i++)
					assert_int_equal(
						by_int(calls[c].nr, calls[c].mode, bad[i], args),
						brokered ? ERRNO(EPERM) : deny);
				for (size_t i = 0; i < ARRAY_LEN(good); i++)
					assert_int_equal(
						by_int(calls[c].nr, calls[c].mode, good[i], args),
						brokered ? deny : ALLOW);
			}
		}
		/* without creation the mode is not looked at by anybody */
		assert_int_equal(fate(SYS_open, 0, O_RDWR | O_TRUNC, 07777, 0), ALLOW);
		assert_int_equal(fate(SYS_openat, 0, 0, O_RDONLY | O_DIRECTORY, 07777), ALLOW);
	}
}

static void test_device_nodes(void **state)
{
	static const uint32_t bad[] = {
		S_IFCHR,           S_IFBLK | 0600,      S_IFDIR, S_IFLNK, 0xf000,
		0x10000 | S_IFCHR, S_IFBLK | 0xffff0000
	};
	static const uint32_t good[] = {
		0, 0644, S_IFREG | 0600, S_IFIFO | 0600, S_IFSOCK, 0xabc0000 | S_IFIFO
	};

	(void)state;
	EACH_PROGRAM
	{
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
	static const uint32_t namespaces[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
					       CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
					       CLONE_NEWNET };
	static const uint32_t fine[] = { 17,
					 0,
					 CLONE_VM | CLONE_VFORK | 17,
					 0x3d0f00 | CLONE_PIDFD,
					 0x80 | CLONE_THREAD,
					 CLONE_IO };

	(void)state;
	EACH_PROGRAM
	{
		uint32_t deny = flags & SECCOMP_NESTING       ? ALLOW
				: flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM)
							      : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
			assert_int_equal(by_int(SYS_clone, 0, namespaces[i], NULL), deny);
			assert_int_equal(by_int(SYS_clone, 0, namespaces[i] | 17, NULL), deny);
			assert_int_equal(by_int(SYS_unshare, 0, namespaces[i] | CLONE_FS, NULL),
					 deny);
		}
		for (size_t i = 0; i < ARRAY_LEN(fine); i++)
			assert_int_equal(by_int(SYS_clone, 0, fine[i], NULL), ALLOW);
		assert_int_equal(fate(SYS_unshare, CLONE_FILES | CLONE_FS, 0, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_unshare, 0x80, 0, 0, 0), deny); /* CLONE_NEWTIME */
		assert_int_equal(fate(SYS_unshare, 1ULL << 32, 0, 0, 0), deny);
		assert_int_equal(fate(SYS_clone3, 0, 0, 0, 0), NO_CALL);
	}
}

static uint32_t socket_fate(uint32_t family, uint32_t type, uint32_t protocol)
{
	uint32_t r = fate(SYS_socket, family, type, protocol, 0);

	for (size_t i = 0; i < ARRAY_LEN(halves); i++)
		assert_int_equal(fate(SYS_socket, family | halves[i], type | halves[i],
				      protocol | halves[i], 0),
				 r);
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
		assert_int_equal(socket_fate(AF_INET, 10, 0), ERRNO(EINVAL)); /* SOCK_PACKET */
		assert_int_equal(socket_fate(AF_NETLINK, SOCK_RAW, 0), netlink);
		assert_int_equal(socket_fate(AF_NETLINK, SOCK_DGRAM, 0), netlink);
		for (uint32_t protocol = 1; protocol < 40; protocol++)
			assert_int_not_equal(socket_fate(AF_NETLINK, SOCK_RAW, protocol), ALLOW);
		assert_int_equal(socket_fate(AF_VSOCK, SOCK_STREAM, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_ALG, SOCK_SEQPACKET, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_PACKET, SOCK_RAW, 0), NOTIFY);
		assert_int_equal(socket_fate(AF_XDP, SOCK_RAW, 0), NOTIFY);
		for (uint32_t family = 0; family < 64; family++)
			if (family != AF_UNIX && family != AF_INET && family != AF_INET6 &&
			    family != AF_NETLINK)
				for (uint32_t type = 0; type < 16; type++)
					assert_int_not_equal(socket_fate(family, type, 0), ALLOW);
		assert_int_not_equal(socket_fate(UINT32_MAX, 1, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_INET, SOCK_STREAM, 0, 0),
				 ERRNO(EAFNOSUPPORT));
		assert_int_equal(fate(SYS_socketpair, 0xf00000000 | AF_UNIX,
				      SOCK_DGRAM | SOCK_CLOEXEC, 0, 0),
				 ALLOW);
		assert_int_equal(fate(SYS_socketpair, 30 /* TIPC */, SOCK_STREAM, 0, 0),
				 ERRNO(EAFNOSUPPORT));
	}
}

static void test_ioctl(void **state)
{
	static const uint32_t refused[] = { TIOCSTI,
					    TIOCLINUX,
					    TIOCCONS,
					    TIOCSETD,
					    0x40086602 /* FS_IOC_SETFLAGS */,
					    0x401c5820 /* FS_IOC_FSSETXATTR */ };
	static const uint32_t given[] = { TCGETS,     TCSETS,
					  TIOCGWINSZ, TIOCSWINSZ,
					  FIONREAD,   FIONBIO,
					  FIOCLEX,    FIOASYNC,
					  TIOCSPGRP,  0x40049409 /* FICLONE */,
					  0x802c542a /* TCGETS2 */ };
	static const uint32_t unknown[] = { 0x8916,     0x89f0, 0x8946, 0xb700,     0xb705,
					    0x50009401, 0xae01, 0x4b3a, 0x400454ca, 0,
					    1,          2,      0x54ff, 0xffffffff, 0x80000000 };

	(void)state;
	EACH_PROGRAM
	{
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
		assert_int_equal(by_int(SYS_ioctl, 1, TIOCGPTPEER, NULL),
				 set ? ALLOW : ERRNO(ENOTTY));
		assert_int_equal(by_int(SYS_ioctl, 1, 0x8912 /* SIOCGIFCONF */, NULL),
				 set ? ALLOW : ERRNO(ENOTTY));
	}
}

static void test_prctl_and_personality(void **state)
{
	static const uint32_t given[] = {
		PR_SET_NAME,     PR_SET_PDEATHSIG,       PR_SET_NO_NEW_PRIVS,
		PR_CAPBSET_READ, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE,
		PR_SET_VMA,      PR_SET_SECCOMP,         PR_CAP_AMBIENT
	};
	static const uint32_t unknown[] = { 0,
					    57,
					    PR_SET_IO_FLUSHER,
					    PR_SET_SYSCALL_USER_DISPATCH,
					    PR_SCHED_CORE,
					    67 /* memory merge */,
					    77,
					    0x7fffffff,
					    0xffffffff };
	static const uint32_t filters[] = { 26 /* SO_ATTACH_FILTER */, 50, 51, 52 };
	static const uint32_t personalities[] = { 0x0400000 /* READ_IMPLIES_EXEC */,
						  0x0440000,
						  0x0100000 /* MMAP_PAGE_ZERO */,
						  0x0200000,
						  1,
						  0xfffffffe };

	(void)state;
	EACH_PROGRAM
	{
		uint32_t deny = flags & SECCOMP_NO_LISTENER ? ERRNO(EPERM) : NOTIFY;

		for (size_t i = 0; i < ARRAY_LEN(given); i++)
			assert_int_equal(by_int(SYS_prctl, 0, given[i], NULL), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
			assert_int_equal(by_int(SYS_prctl, 0, unknown[i], NULL), ERRNO(EINVAL));
		assert_int_equal(by_int(SYS_prctl, 0, PR_SET_MM, NULL), deny);
		assert_int_equal(by_int(SYS_fcntl, 1, F_SETLEASE, NULL), deny);
		assert_int_equal(by_int(SYS_fcntl, 1, 1040 /* F_SETDELEG */, NULL), deny);
		assert_int_equal(by_int(SYS_fcntl, 1, F_NOTIFY, NULL), ERRNO(EINVAL));
		assert_int_equal(by_int(SYS_fcntl, 1, F_GETLEASE, NULL), ALLOW);
		assert_int_equal(by_int(SYS_fcntl, 1, F_DUPFD_CLOEXEC, NULL), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
			assert_int_equal(
				by_int(SYS_setsockopt, 2, filters[i], (const uint64_t[6]){ 0, 1 }),
				deny);
			assert_int_equal(
				by_int(SYS_setsockopt, 2, filters[i], (const uint64_t[6]){ 0, 6 }),
				ALLOW);
		}
		assert_int_equal(by_int(SYS_inotify_add_watch, 2, 0x20 /* IN_OPEN */, NULL),
				 set ? ALLOW : deny);
		assert_int_equal(by_int(SYS_inotify_add_watch, 2,
					0xfce /* all but IN_OPEN, IN_ACCESS, IN_CLOSE_NOWRITE */,
					NULL),
				 ALLOW);
		assert_int_equal(by_int(SYS_setsockopt, 2, 15 /* SO_REUSEPORT */,
					(const uint64_t[6]){ 0, 1 }),
				 ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(personalities); i++)
			assert_int_equal(by_int(SYS_personality, 0, personalities[i], NULL), deny);
		assert_int_equal(by_int(SYS_personality, 0, 0, NULL), set ? ALLOW : deny);
		assert_int_equal(by_int(SYS_personality, 0, 0xffffffff, NULL), set ? ALLOW : deny);
		assert_int_equal(by_int(SYS_personality, 0, 0x40000, NULL),
				 set == SYSCALLS_BUILD ? ALLOW : deny);
	}
}

static void test_own_filters(void **state)
{
	(void)state;
	take(SYSCALLS_DEFAULT, 0);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0), ALLOW);
	assert_int_equal(
		fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 0, 0), ALLOW);
	assert_int_equal(
		by_int(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, (uint64_t[6]){ 1 }),
		NOTIFY);
	assert_int_equal(by_int(SYS_seccomp, 1, 0xffffffff, (uint64_t[6]){ 1 }), NOTIFY);
	assert_int_equal(fate(SYS_seccomp, (5ULL << 32) | 1, 8, 0, 0), NOTIFY);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 0, 0), ALLOW);
	assert_int_equal(fate(SYS_seccomp, 77, 0, 0, 0), ERRNO(EINVAL));
	take(SYSCALLS_STRICT, 0);
	assert_int_equal(fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0), NO_CALL);
	take(SYSCALLS_DEFAULT, SECCOMP_NESTING);
	assert_int_equal(
		fate(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 0),
		ALLOW);
}

static void test_memory(void **state)
{
	static const long closable[] = { SYS_memfd_create, SYS_shmget, SYS_msgget, SYS_semget,
					 SYS_vmsplice };

	(void)state;
	EACH_PROGRAM
	{
		bool closed = flags & SECCOMP_CLOSE_MEMORY;

		assert_int_equal(by_int(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS, NULL), ALLOW);
		assert_int_equal(
			by_int(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, NULL),
			ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, MFD_CLOEXEC | MFD_ALLOW_SEALING, NULL),
				 closed ? NO_CALL : ALLOW);
		assert_int_equal(by_int(SYS_memfd_create, 1, MFD_HUGETLB, NULL), ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, 0xfffffffe, NULL), ERRNO(ENOMEM));
		assert_int_equal(by_int(SYS_memfd_create, 1, 0xffffffff, NULL),
				 closed ? NO_CALL : ALLOW);
		if (set == 0 || flags & SECCOMP_LANDLOCK)
			continue;
		for (size_t i = 1; i < ARRAY_LEN(closable); i++)
			assert_int_equal(fate(closable[i], 0, 4097, 0600, 0),
					 closed ? NO_CALL : ALLOW);
		assert_int_equal(fate(SYS_shmget, 0, 4096, 0600, 0),
				 closed && flags & SECCOMP_NESTING ? NO_CALL : ALLOW);
		assert_int_equal(fate(SYS_shmget, 0, 1ULL << 32, 0600, 0),
				 closed ? NO_CALL : ALLOW);
		assert_int_equal(by_int(SYS_shmget, 2, 04000 | 0600, NULL), ERRNO(ENOMEM));
	}
}

/* Blocks without writing: only the mode that frees some is left where the disk limit is held by
 * looking. */
static void test_allocation(void **state)
{
	static const uint32_t frees[] = { 0x3 }; /* PUNCH_HOLE | KEEP_SIZE */
	static const uint32_t takes[] = { 0,    0x1,  0x2,  0x4,   0x8,        0x9,       0xa,
					  0xb,  0x10, 0x11, 0x13,  0x20,       0x21,      0x40,
					  0x41, 0x80, 0x81, 0x100, 0x80000003, UINT32_MAX };

	(void)state;
	EACH_PROGRAM
	{
		uint32_t taken = flags & SECCOMP_CLOSE_ALLOCATION ? ERRNO(EOPNOTSUPP) : ALLOW;

		for (size_t i = 0; i < ARRAY_LEN(frees); i++)
			assert_int_equal(by_int(SYS_fallocate, 1, frees[i], NULL), ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(takes); i++)
			assert_int_equal(by_int(SYS_fallocate, 1, takes[i], NULL), taken);
	}
}

static void test_scheduling(void **state)
{
	(void)state;
	take(SYSCALLS_DEFAULT, 0);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_OTHER, NULL), ALLOW);
	/* ward-init */
	assert_int_equal(fate(SYS_sched_setscheduler, 1, SCHED_IDLE, 0, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_sched_setaffinity, 1, 8, 0x1000, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_sched_setaffinity, 2, 8, 0x1000, 0), ALLOW);
	assert_int_equal(fate(SYS_setpriority, 0, 1, 19, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_setpriority, 2, 0, 19, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_setpriority, 0, 0, 19, 0), ALLOW);
	assert_int_equal(fate(SYS_prlimit64, 1, 7, 0x1000, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_prlimit64, 1, 7, 1ULL << 40, 0), ERRNO(EPERM));
	assert_int_equal(fate(SYS_prlimit64, 1, 7, 0, 0x1000), ALLOW);
	assert_int_equal(fate(SYS_prlimit64, 0, RLIMIT_CORE, 0x1000, 0), ERRNO(0));
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_BATCH | SCHED_RESET_ON_FORK, NULL),
			 ALLOW);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_FIFO, NULL), NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, SCHED_RR | SCHED_RESET_ON_FORK, NULL),
			 NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, 6, NULL), NOTIFY);
	assert_int_equal(by_int(SYS_sched_setscheduler, 1, 0x80000000, NULL), NOTIFY);
}

static void test_landlock_level(void **state)
{
	static const uint64_t to[6] = { 3, 0, 0, 0, 0x7f0000001000, 16 },
			      high_to[6] = { 3, 0, 0, 0, 1ULL << 32, 16 };
	struct seccomp_data send = { SYS_sendto, AUDIT_ARCH_X86_64, 0, { 3, 0, 0, 0, 0, 0 } };

	(void)state;
	for (unsigned set = 0; set < 3; set++) {
		take(set, SECCOMP_LANDLOCK);
		for (uint32_t family = 0; family < 64; family++)
			for (uint32_t type = 0; type < 16; type++)
				assert_int_not_equal(socket_fate(family, type, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), ALLOW);
		assert_int_equal(fate(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0),
				 ALLOW);
		assert_int_not_equal(fate(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 0), ALLOW);
		assert_int_not_equal(fate(SYS_socketpair, AF_UNIX, SOCK_RAW, 0, 0), ALLOW);
		assert_int_equal(run(&send), ALLOW);
		memcpy(send.args, to, sizeof(to));
		assert_int_equal(run(&send), NOTIFY);
		memcpy(send.args, high_to, sizeof(to));
		assert_int_equal(run(&send), NOTIFY);
		memset(send.args, 0, sizeof(send.args));

		assert_int_equal(fate(SYS_prlimit64, 0, 7, 0x1000, 0), ALLOW);
		assert_int_equal(fate(SYS_prlimit64, 0, RLIMIT_CORE, 0x1000, 0), SECCOMP_RET_ERRNO);
		assert_int_equal(fate(SYS_prlimit64, 0, RLIMIT_CORE, 1ULL << 40, 0),
				 SECCOMP_RET_ERRNO);
		assert_int_equal(fate(SYS_prlimit64, 0, RLIMIT_CORE, 0, 0x1000), ALLOW);
		assert_int_equal(fate(SYS_prlimit64, 1234, 7, 0, 0x1000), ALLOW); /* asks */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu_requests),   cmocka_unit_test(test_interface_requests),
		cmocka_unit_test(test_kvm_requests),   cmocka_unit_test(test_kvm_sentry_requests),
		cmocka_unit_test(test_set_id_modes),   cmocka_unit_test(test_device_nodes),
		cmocka_unit_test(test_namespaces),     cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_ioctl),          cmocka_unit_test(test_prctl_and_personality),
		cmocka_unit_test(test_own_filters),    cmocka_unit_test(test_memory),
		cmocka_unit_test(test_allocation),     cmocka_unit_test(test_scheduling),
		cmocka_unit_test(test_landlock_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
