/*
 * Words with gVisor's kernel over its control socket: JSON objects, one for each call, descriptors
 * beside them. In: a command for `exec`, a signal, that the first command shall begin, that all
 * shall stand still, or a checkpoint. Out: its answer (answer.c). Runs in the runner. The socket
 * lies where the command inside the inner runtime has no file.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "gvisor/gvisor.h"

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = GVISOR_CONTROL };

int control_listen(void)
{
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return -errno;
	return take_fd(&fd);
}

static int control_connect(void)
{
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* One more read: as answer_parse(). -EPIPE: the kernel is gone. */
static int read_answer(int fd, struct buf *so_far, struct answer *ret_answer)
{
	char bytes[4096];
	ssize_t n;
	int r = direct_wait_readable(fd);

	*ret_answer = (struct answer){ 0 };
	if (r < 0)
		return r;
	n = recv(fd, bytes, sizeof(bytes), 0);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -EPIPE;
	buf_add(so_far, bytes, (size_t)n);
	return so_far->failed ? -ENOMEM : answer_parse(so_far->data, so_far->len, ret_answer);
}

/* Sends what is in request and waits for the answer. -EREMOTEIO: the kernel refused,
 * ret_answer->error says why. */
static int call(int fd, const struct buf *request, const int *fds, size_t count,
		struct answer *ret_answer)
{
	auto_buf bytes = { 0 };
	int r = request->failed ? -ENOMEM
				: io_send_fds(fd, request->data, request->len, fds, count);

	*ret_answer = (struct answer){ .result = -1 };
	while (r == 0) {
		r = read_answer(fd, &bytes, ret_answer);
		if (r == 0)
			return ret_answer->success ? 0 : -EREMOTEIO;
		if (r == -EAGAIN)
			r = 0;
	}
	return r;
}

static void begin_call(struct json *j, const char *method)
{
	json_begin_object(j, NULL);
	json_string(j, "method", method);
}

int control_start(struct answer *ret_answer)
{
	auto_fd fd = control_connect();
	auto_buf request = { 0 };
	struct json j = { .out = &request };

	if (fd < 0)
		return fd;
	begin_call(&j, "containerManager.StartRoot");
	json_string(&j, "arg", GVISOR_NAME);
	json_end_object(&j);
	return call(fd, &request, NULL, 0, ret_answer);
}

int control_signal(pid_t pid, int sig)
{
	auto_fd fd = control_connect();
	auto_buf request = { 0 };
	struct json j = { .out = &request };
	struct answer a;

	if (fd < 0)
		return fd;
	begin_call(&j, "containerManager.Signal");
	json_begin_object(&j, "arg");
	json_string(&j, "CID", GVISOR_NAME);
	json_int(&j, "Signo", sig);
	json_int(&j, "PID", pid);
	json_int(&j, "Mode", 0);
	json_end_object(&j);
	json_end_object(&j);
	return call(fd, &request, NULL, 0, &a);
}

/* One call without an argument, or with those that the caller has written behind begin_call(). */
static int finish_call(struct json *j, const int *fds, size_t count, struct answer *ret_answer)
{
	auto_fd fd = control_connect();

	json_end_object(j);
	return fd < 0 ? fd : call(fd, j->out, fds, count, ret_answer);
}

static void loopback_part(struct json *j, const char *ip, int prefix)
{
	json_begin_object(j, NULL);
	json_string(j, "Address", ip);
	json_int(j, "PrefixLen", prefix);
	json_end_object(j);
}

static void loopback_route(struct json *j, const char *network, const char *mask)
{
	json_begin_object(j, NULL);
	json_begin_object(j, "Destination");
	json_string(j, "IP", network);
	json_string(j, "Mask", mask); /* in base 64, as Go writes bytes */
	json_end_object(j);
	json_string(j, "Gateway", "");
	json_end_object(j);
}

int control_loopback(struct answer *ret_answer)
{
	auto_buf request = { 0 };
	struct json j = { .out = &request };

	begin_call(&j, "Network.CreateLinksAndRoutes");
	json_begin_object(&j, "arg");
	json_begin_array(&j, "LoopbackLinks");
	json_begin_object(&j, NULL);
	json_string(&j, "Name", "lo");
	json_begin_array(&j, "Addresses");
	loopback_part(&j, "127.0.0.1", 8);
	loopback_part(&j, "::1", 128);
	json_end_array(&j);
	json_begin_array(&j, "Routes");
	loopback_route(&j, "127.0.0.0", "/wAAAA==");
	loopback_route(&j, "::1", "/////////////////////w==");
	json_end_array(&j);
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
	return finish_call(&j, NULL, 0, ret_answer);
}

int control_pause(bool pause)
{
	auto_buf request = { 0 };
	struct json j = { .out = &request };
	struct answer a;

	begin_call(&j, pause ? "containerManager.Pause" : "containerManager.Resume");
	json_null(&j, "arg");
	return finish_call(&j, NULL, 0, &a);
}

int control_count(uint64_t *ret_count)
{
	auto_fd fd = control_connect();
	auto_buf request = { 0 }, bytes = { 0 };
	struct json j = { .out = &request };
	struct answer a;
	int r;

	if (fd < 0)
		return fd;
	begin_call(&j, "containerManager.Processes");
	json_string(&j, "arg", GVISOR_NAME);
	json_end_object(&j);
	r = request.failed ? -ENOMEM : io_send_fds(fd, request.data, request.len, NULL, 0);
	while (r == 0) {
		r = read_answer(fd, &bytes, &a);
		if (r == 0 && a.success) {
			*ret_count = answer_count_threads(bytes.data, bytes.len);
			return 0;
		}
		r = r == 0 ? -EREMOTEIO : r == -EAGAIN ? 0 : r;
	}
	return r;
}

int control_checkpoint(int fd, struct answer *ret_answer)
{
	auto_buf request = { 0 };
	struct json j = { .out = &request };

	begin_call(&j, "containerManager.Checkpoint");
	json_begin_object(&j, "arg");
	json_null(&j, "key");
	json_begin_object(&j, "metadata");
	json_string(&j, "compression", "none");
	json_end_object(&j);
	json_begin_object(&j, "MemoryFileSaveOpts");
	json_bool(&j, "ExcludeCommittedZeroPages", true);
	json_end_object(&j);
	json_bool(&j, "have_pages_file", false);
	json_bool(&j, "Resume", true);
	json_end_object(&j);
	return finish_call(&j, &fd, 1, ret_answer);
}

int control_restore(int fd, int device_fd, struct answer *ret_answer)
{
	const int fds[] = { fd, device_fd };
	auto_buf request = { 0 };
	struct json j = { .out = &request };

	begin_call(&j, "containerManager.Restore");
	json_begin_object(&j, "arg");
	json_bool(&j, "HavePagesFile", false);
	json_bool(&j, "HaveDeviceFile", device_fd >= 0);
	json_end_object(&j);
	return finish_call(&j, fds, device_fd >= 0 ? 2 : 1, ret_answer);
}

/* Our own program inside the inner runtime, as its uid 0 without a capability. */
static void exec_request(struct json *j, const char *role, const char *name, bool terminal)
{
	static const char *const no_caps[] = { "PermittedCaps", "InheritableCaps", "EffectiveCaps",
					       "BoundingCaps", "AmbientCaps" };

	begin_call(j, "containerManager.ExecuteAsync");
	json_begin_object(j, "arg");
	json_string(j, "filename", "");
	json_begin_array(j, "argv");
	json_string(j, NULL, GVISOR_SELF);
	json_string(j, NULL, role);
	json_string(j, NULL, name);
	json_end_array(j);
	json_begin_array(j, "envv");
	json_end_array(j);
	json_null(j, "MountNamespace");
	json_string(j, "wd", "/");
	json_int(j, "KUID", 0);
	json_int(j, "KGID", 0);
	json_begin_array(j, "ExtraKGIDs");
	json_end_array(j);
	json_begin_object(j, "Capabilities");
	for (size_t i = 0; i < ARRAY_LEN(no_caps); i++)
		json_int(j, no_caps[i], 0);
	json_end_object(j);
	json_bool(j, "StdioIsPty", terminal);
	json_begin_array(j, "GuestFDs");
	for (int i = 0; i < 3; i++)
		json_int(j, NULL, i);
	json_end_array(j);
	json_string(j, "ContainerID", GVISOR_NAME);
	json_null(j, "PIDNamespace");
	json_null(j, "Limits");
	json_end_object(j);
	json_end_object(j);
}

int control_exec(const char *role, const char *name, const int stdio[3], struct answer *ret_answer)
{
	auto_fd fd = control_connect();
	auto_buf request = { 0 };
	struct json j = { .out = &request };
	int r;

	if (fd < 0)
		return fd;
	exec_request(&j, role, name, isatty(stdio[0]) == 1);
	r = call(fd, &request, stdio, 3, ret_answer);
	if (r < 0)
		return r;
	return ret_answer->result > 0 && ret_answer->result < 1 << 30 ? (int)ret_answer->result
								      : -EPROTO;
}

static int ask_wait(int fd, pid_t pid)
{
	auto_buf request = { 0 };
	struct json j = { .out = &request };

	begin_call(&j, "containerManager.WaitPID");
	json_begin_object(&j, "arg");
	json_int(&j, "PID", pid);
	json_string(&j, "CID", GVISOR_NAME);
	json_end_object(&j);
	json_end_object(&j);
	return request.failed ? -ENOMEM : io_send_fds(fd, request.data, request.len, NULL, 0);
}

/* A signal that came for the command. Others have nothing to say here. */
static void pass_one(int signal_fd, pid_t pid)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
	    info.ssi_signo != SIGCHLD && control_signal(pid, (int)info.ssi_signo) < 0)
		errno = 0; /* it has ended, and its answer is on the way */
}

int control_wait(pid_t pid, int *ret_status)
{
	auto_fd fd = control_connect();
	auto_fd signal_fd = -1;
	auto_buf bytes = { 0 };
	struct answer a = { 0 };
	sigset_t all;
	int r;

	sigfillset(&all);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC);
	if (fd < 0 || signal_fd < 0)
		return fd < 0 ? fd : -errno;
	r = ask_wait(fd, pid);
	while (r == 0 || r == -EAGAIN) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
				      { .fd = signal_fd, .events = POLLIN } };

		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			pass_one(signal_fd, pid);
		if (!p[0].revents)
			continue;
		r = read_answer(fd, &bytes, &a);
		if (r == 0 && (!a.success || a.result < 0 || a.result > 0xffff))
			return -EPROTO;
		if (r == 0) {
			*ret_status = (int)a.result;
			return 0;
		}
	}
	return r;
}
