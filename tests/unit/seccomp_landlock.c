/* Landlock rules in force, for each version of Landlock that a host could have up to this kernel's
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/native/landlock.h"
#include "host/facts.h"

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 250 + 1);                                                 \
	} while (0)
#define EXPECT_ERRNO(call, code) EXPECT((call) < 0 && errno == (code))

static char top[] = "/tmp/ward-landlock-XXXXXX";
static int host_abi;

static int in_child(void (*body)(int abi), int abi)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		EXPECT(chdir(top) == 0);
		EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		body(abi);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);

	EXPECT(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
}

static void files(int abi)
{
	const struct landlock_path paths[] = {
		{ .path = "/usr" },
		{ .path = "ws", .writable = true },
		{ .path = "read", .rights = LANDLOCK_READ },
		{ .path = "one/file", .rights = LANDLOCK_READ | LANDLOCK_MODIFY },
		{ .path = "not/there", .writable = true },
	};

	make_file("ws/a");
	EXPECT(landlock_apply(abi, paths, ARRAY_LEN(paths), 0) == 0);
	EXPECT(open("ws/b", O_CREAT | O_RDWR, 0600) >= 0);
	EXPECT(mkdir("ws/d", 0700) == 0 && rename("ws/a", "ws/d/a") == 0 &&
	       link("ws/d/a", "ws/a") == 0);
	EXPECT(unlink("ws/a") == 0 && unlink("ws/d/a") == 0 && rmdir("ws/d") == 0 &&
	       unlink("ws/b") == 0);
	EXPECT(mknod("ws/p", S_IFIFO | 0600, 0) == 0 && unlink("ws/p") == 0);
	EXPECT(open("read/file", O_RDONLY) >= 0);
	EXPECT_ERRNO(open("read/file", O_RDWR), EACCES);
	EXPECT_ERRNO(open("read/new", O_CREAT | O_RDWR, 0600), EACCES);
	EXPECT_ERRNO(link("read/file", "ws/l"), EXDEV);
	EXPECT_ERRNO(rename("read/file", "ws/l"), EACCES);
	EXPECT(open("one/file", O_RDWR) >= 0);
	EXPECT_ERRNO(open("one/other", O_RDONLY), EACCES);
	EXPECT_ERRNO(open("/etc/passwd", O_RDONLY), EACCES);
	EXPECT_ERRNO(open(".", O_RDONLY | O_DIRECTORY), EACCES);
	EXPECT_ERRNO(execl("read/file", "x", NULL), EACCES);
	if (abi >= 3)
		EXPECT_ERRNO(truncate("read/file", 0), EACCES);
}

static void test_files(void **state)
{
	(void)state;
	for (int abi = 2; abi <= host_abi; abi++)
		assert_int_equal(in_child(files, abi), 0);
}

static void network(int abi)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT(landlock_apply(abi, NULL, 0, LANDLOCK_NO_TCP) == 0);
	if (abi < 4)
		return;
	EXPECT_ERRNO(connect(fd, (struct sockaddr *)&to, sizeof(to)), EACCES);
	to.sin_port = htons(54321);
	EXPECT_ERRNO(bind(fd, (struct sockaddr *)&to, sizeof(to)), EACCES);
}

static void scopes(int abi)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "\0ward-landlock-test" };
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 19;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	pid_t child;

	EXPECT(bind(listener, (struct sockaddr *)&to, len) == 0 && listen(listener, 1) == 0);
	EXPECT(kill(getppid(), 0) == 0);
	EXPECT(landlock_apply(abi, NULL, 0, LANDLOCK_SCOPES_ONLY) == 0);
	EXPECT(open("/etc/passwd", O_RDONLY) >= 0); /* no file rules */
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	EXPECT(kill(child, SIGKILL) == 0);
	EXPECT(waitpid(child, NULL, 0) == child); /* it holds the listener's name too */
	if (abi < 6) {
		EXPECT(kill(getppid(), 0) == 0);
		return;
	}
	EXPECT_ERRNO(kill(getppid(), 0), EPERM);
	EXPECT_ERRNO(connect(fd, (struct sockaddr *)&to, len), EPERM); /* it was bound outside */
}

static void test_network_and_scopes(void **state)
{
	(void)state;
	for (int abi = 0; abi <= host_abi; abi++) {
		assert_int_equal(in_child(network, abi), 0);
		assert_int_equal(in_child(scopes, abi), 0);
	}
}

static void insist(int abi)
{
	EXPECT(landlock_apply(abi, NULL, 0, LANDLOCK_MUST | LANDLOCK_NO_TCP) ==
	       (abi < 6 ? -EOPNOTSUPP : 0));
	EXPECT((open("/etc/passwd", O_RDONLY) >= 0) == (abi < 6)); /* all or nothing */
}

static void old(int abi)
{
	EXPECT(landlock_apply(abi, NULL, 0, 0) == 0);
	EXPECT(open("/etc/passwd", O_RDONLY) >= 0);
}

static void test_old_kernels(void **state)
{
	(void)state;
	for (int abi = 0; abi <= host_abi; abi++)
		assert_int_equal(in_child(insist, abi), 0);
	assert_int_equal(in_child(old, 0), 0);
	assert_int_equal(in_child(old, 1), 0);
}

static int set_up(void **state)
{
	struct facts f;

	(void)state;
	facts_read(&f);
	host_abi = f.landlock_abi;
	if (host_abi < 2)
		print_message("this kernel has no Landlock: only that it is missed is tested\n");
	if (!mkdtemp(top) || chdir(top) < 0)
		return -1;
	if (mkdir("ws", 0700) < 0 || mkdir("read", 0700) < 0 || mkdir("one", 0700) < 0)
		return -1;
	make_file("read/file");
	chmod("read/file", 0755);
	make_file("one/file");
	make_file("one/other");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_network_and_scopes),
		cmocka_unit_test(test_old_kernels),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
