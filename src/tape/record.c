/*
 * Recording, as front does it. In: requests that were decided about, responses as they come. Out:
 * frames over a pipe to the process record, which has the file. An exchange is recorded when its
 * answer begins: until then it is unknown whether ward-keys found a secret in the request, and one
 * in which it did leaves nothing but its method and host. If the file cannot be written any more,
 * requests are refused: a recording that is asked for is whole, or says where it ends. Runs in
 * front.
 */
#include "tape/record.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"

#define PIPE_BYTES (1024 * 1024)
#define DATA_MAX (64 * 1024)
#define LEAK_FIELD                                                                                 \
	"x-ward-leak" /* ward-keys' word in an answer: something was found in the request */

int record_start(struct front *f, struct ward_err *e)
{
	static char *const argv[] = { (char *)(uintptr_t) "ward-gateway",
				      (char *)(uintptr_t) "record", NULL };
	static char *const none[] = { NULL };
	auto_fd self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int ends[2];
	pid_t pid;

	if (self < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot prepare the recording");
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	pid = fork();
	if (pid == 0) {
		dup2(ends[0], GATE_FD_CONFIG); /* it needs no configuration */
		close(GATE_FD_ORDERS);
		close(GATE_FD_HOSTS);
		execveat(self, "", argv, none, AT_EMPTY_PATH);
		_exit(125);
	}
	close(ends[0]);
	close(GATE_FD_TAPE);
	if (pid < 0) {
		close(ends[1]);
		return ward_fail_errno(e, "cannot start the process that records");
	}
	f->record_fd = ends[1];
	f->record_began_ms = io_now_ms();
	return 0;
}

void record_stop(struct front *f)
{
	if (f->record_fd > 0)
		close(f->record_fd);
	f->record_fd = 0;
}

void record_cut(struct front *f)
{
	f->record_cut = true;
	for (uint32_t i = 0; i < f->flow_max; i++)
		if (f->flows[i] && f->flows[i]->inspect && !f->flows[i]->server)
			flow_close(f, f->flows[i], true);
}

static void tell(struct front *f, uint32_t exchange, enum tape_kind kind, const void *bytes,
		 size_t n)
{
	struct tape_frame frame = { .bytes = (uint32_t)n,
				    .kind = (uint8_t)kind,
				    .exchange = exchange,
				    .at_ms = (uint32_t)(io_now_ms() - f->record_began_ms) };

	if (f->record_failed)
		return;
	if (n > TAPE_PAYLOAD_MAX || io_write_all(f->record_fd, &frame, sizeof(frame)) < 0 ||
	    io_write_all(f->record_fd, bytes, n) < 0)
		f->record_failed = true;
}

bool record_begin(struct front *f, const struct want *want, bool tls, unsigned version,
		  const struct http_request *r, struct http_text path, struct record **ret)
{
	struct record *made;

	*ret = NULL;
	if (f->record_fd <= 0)
		return true;
	if (f->record_failed || f->record_count >= TAPE_EXCHANGES_MAX)
		return false;
	made = calloc(1, sizeof(*made));
	if (!made)
		return false;
	made->front = f;
	tape_write_ask(&made->ask, r, tls, version, want->host.name, want->port, path);
	sha256_begin(&made->sent);
	if (made->ask.failed || made->ask.len > TAPE_PAYLOAD_MAX) {
		buf_free(&made->ask);
		free(made);
		return false;
	}
	*ret = made;
	return true;
}

void record_sent(struct record *r, const void *bytes, size_t n)
{
	if (!r || r->sent_all)
		return;
	sha256_add(&r->sent, bytes, n);
	r->sent_bytes += n;
}

static void tell_body(struct record *r)
{
	struct tape_body body = { .bytes = r->sent_bytes };

	sha256_end(&r->sent, body.digest);
	tell(r->front, r->number, TAPE_BODY, &body, sizeof(body));
}

void record_sent_all(struct record *r)
{
	if (!r || r->sent_all)
		return;
	r->sent_all = true;
	if (r->number)
		tell_body(r);
}

/* The same request without a word of the program's. */
static void hide(struct record *r)
{
	static const char hidden[] = "/(a secret was found in this request)";
	struct http_request bare = { .body = false };
	struct tape_ask ask = { 0 };
	auto_buf out = { 0 };
	char host[HOST_TEXT];

	if (!tape_ask_read((const uint8_t *)r->ask.data, r->ask.len, &ask))
		return;
	bare.method = ask.method;
	snprintf(host, sizeof(host), "%.*s", (int)ask.host.n, ask.host.s);
	tape_write_ask(&out, &bare, ask.tls, ask.version, host, ask.port,
		       (struct http_text){ hidden, sizeof(hidden) - 1 });
	r->ask.failed |= out.failed;
	r->ask.len = 0;
	buf_add(&r->ask, out.data, out.len);
	memset(&r->sent, 0, sizeof(r->sent)); /* not even its digest */
	sha256_begin(&r->sent);
	r->sent_bytes = 0;
	r->sent_all = true;
}

void record_answer(struct record *r, uint16_t status, const struct http_fields *fields)
{
	struct front *f = r ? r->front : NULL;
	auto_buf head = { 0 };

	if (!r || r->number || status < 200)
		return;
	if (http_field_get(fields, LEAK_FIELD).s)
		hide(r);
	tape_write_head(&head, status, fields);
	f->record_failed |= head.failed || r->ask.failed;
	r->number = ++f->record_count;
	tell(f, r->number, TAPE_ASK, r->ask.data, r->ask.len);
	buf_free(&r->ask);
	if (r->sent_all)
		tell_body(r);
	tell(f, r->number, TAPE_HEAD, head.data, head.len);
}

void record_data(struct record *r, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (r && r->number && n) {
		size_t some = n < DATA_MAX ? n : DATA_MAX;

		tell(r->front, r->number, TAPE_DATA, at, some);
		at += some;
		n -= some;
	}
}

void record_end(struct record **r, const struct http_fields *trailers, bool whole)
{
	struct record *ended = take_ptr(*r);
	auto_buf end = { 0 };

	if (!ended)
		return;
	if (ended->number) {
		tape_write_end(&end, whole ? TAPE_WHOLE : TAPE_BROKEN, trailers);
		ended->front->record_failed |= end.failed;
		tell(ended->front, ended->number, TAPE_END, end.data, end.len);
	}
	buf_free(&ended->ask);
	free(ended);
}
