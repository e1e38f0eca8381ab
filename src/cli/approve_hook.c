/*
 * ward approve --webhook: a program elsewhere decides. In: questions. Out: each is posted to a URL
 * by ward-webhook, a process of its own that is locked up and has no key (src/hook); what comes
 * back counts only if it is signed with the key. Both directions are signed with HMAC-SHA256 over
 * texts that begin differently, so that what was sent cannot come back as an answer; the answer's
 * also covers a random number of this one question, so that it answers no other one, at no other
 * time. A server without an answer says 202 or 204 and is asked again. Runs with the user's rights.
 */
#include "cli/approve_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "approve/answer.h"
#include "base/hmac.h"
#include "base/io.h"
#include "host/program.h"

#define SENT_MAX 500
#define KEY_MIN 16
#define KEY_MAX 4096
#define ANSWER_MAX 20000
#define AGAIN_MS 2000  /* there is no answer yet */
#define FAILED_MS 5000 /* it cannot be reached, or said something else */

struct sent {
	struct client_question q;
	char nonce[ANSWER_NONCE + 1];
	uint64_t due_ms;
	pid_t pid; /* of the one that is under way; 0: none */
	int fd;    /* what it writes */
	struct buf out;
	bool complained, seen;
};

struct hook {
	const struct options *o; /* borrowed */
	struct buf key;
	char from[QUESTION_FROM_BYTES];
	struct sent *sent; /* owned; SENT_MAX */
	size_t count;
};

void hook_sign(const struct buf *key, bool answer, const char *nonce_or_time, const void *body,
	       size_t n, char ret_hex[SHA256_HEX])
{
	char head[80];
	const struct hmac_part parts[] = { { head, 0 }, { body, n } };
	struct hmac_part all[2];

	snprintf(head, sizeof(head), "%s%.40s.", answer ? "answer." : "", nonce_or_time);
	memcpy(all, parts, sizeof(all));
	all[0].n = strlen(head);
	hmac_hex(buf_text(key), key->len, all, 2, ret_hex);
	explicit_bzero(head, sizeof(head));
}

/* -- beginning and end */

static int read_key(struct hook *h, struct ward_err *e)
{
	auto_fd fd = open(h->o->key, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot open the key %.200s", h->o->key);
	if (!S_ISREG(st.st_mode) || st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid)) {
		ward_fail(e, EACCES, "the key %.200s can be read by others", h->o->key);
		return ward_remedy(e, "chmod 600 %.200s", h->o->key);
	}
	r = io_read_all(fd, KEY_MAX, &h->key);
	if (r < 0)
		return ward_fail(e, -r, "cannot read the key %.200s", h->o->key);
	while (h->key.len && strchr("\r\n", h->key.data[h->key.len - 1]))
		h->key.len--;
	if (h->key.len >= KEY_MIN)
		return 0;
	ward_fail(e, EINVAL, "the key %.200s is shorter than %d bytes", h->o->key, KEY_MIN);
	return ward_remedy(e, "openssl rand -hex 32 > %.200s", h->o->key);
}

int hook_create(const struct options *o, struct hook **ret, struct ward_err *e)
{
	struct hook *h = calloc(1, sizeof(*h));
	const char *host = strstr(o->webhook, "://");

	if (h)
		h->sent = calloc(SENT_MAX, sizeof(*h->sent));
	if (!h || !h->sent) {
		free(h);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	h->o = o;
	if (!host || strpbrk(o->webhook, "\r\n ") ||
	    (strncmp(o->webhook, "https://", 8) != 0 && strncmp(o->webhook, "http://", 7) != 0)) {
		ward_fail(e, EINVAL, "--webhook %.200s: not a URL", o->webhook);
		ward_remedy(e, "https://HOST/PATH, or http:// on this machine");
	} else if (read_key(h, e) == 0) {
		snprintf(h->from, sizeof(h->from), "%.*s", (int)strcspn(host + 3, "/?#"), host + 3);
		*ret = h;
		return 0;
	}
	hook_destroy(h);
	return -e->code;
}

static void stop_one(struct sent *s)
{
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
		close(s->fd);
	}
	buf_free(&s->out);
	s->out = (struct buf){ 0 };
	s->pid = 0;
}

void hook_destroy(struct hook *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		stop_one(&h->sent[i]);
	if (h->key.data)
		explicit_bzero(h->key.data, h->key.len);
	buf_free(&h->key);
	free(h->sent);
	free(h);
}

/* -- sending */

static int make_request(const struct hook *h, const struct sent *s, struct buf *out)
{
	char stamp[24], hex[SHA256_HEX];
	auto_buf body = { 0 };

	approve_put_json(&s->q, "question", &body);
	if (body.failed || !body.len)
		return -ENOMEM;
	body.len--; /* one member more */
	buf_printf(&body, ",\"nonce\":\"%s\"}", s->nonce);
	snprintf(stamp, sizeof(stamp), "%" PRIu64, (uint64_t)time(NULL));
	hook_sign(&h->key, false, stamp, buf_text(&body), body.len, hex);
	buf_printf(out,
		   "%s\nContent-Type: application/json\nWard-Timestamp: %s\n"
		   "Ward-Signature: v1=%s\n\n",
		   h->o->webhook, stamp, hex);
	buf_add(out, buf_text(&body), body.len);
	return out->failed ? -ENOMEM : 0;
}

static void become(int in_fd, int out_fd)
{
	static char name[] = "ward-webhook";
	char *const argv[] = { name, NULL };
	struct ward_err e = { 0 };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0)
		(void)!program_become(argv, &e);
	(void)say_error(&e, false, 0);
	_exit(EXIT_REFUSED);
}

/* The request fits into the pipe, so nobody waits for the process to read. */
static void send_one(struct hook *h, struct sent *s)
{
	auto_buf request = { 0 };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };

	s->due_ms = io_now_ms() + FAILED_MS;
	if (make_request(h, s, &request) < 0 || pipe2(in, O_CLOEXEC) < 0)
		return;
	if (pipe2(out, O_CLOEXEC) == 0 && fcntl(in[1], F_SETFL, O_NONBLOCK) == 0 &&
	    write(in[1], request.data, request.len) == (ssize_t)request.len)
		s->pid = fork();
	if (s->pid == 0 && out[1] >= 0)
		become(in[0], out[1]);
	if (s->pid < 0)
		s->pid = 0;
	close(in[0]);
	close(in[1]);
	own_close_fd(&out[1]);
	if (s->pid > 0) {
		(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
		s->fd = out[0];
	} else {
		own_close_fd(&out[0]);
	}
}

/* -- what came back */

static void complain(struct sent *s, const char *why)
{
	auto_buf out = { 0 };

	if (!s->complained)
		buf_printf(&out, "ward: the webhook did not answer %s:%" PRIu64 ": %s\n", s->q.box,
			   s->q.q.id, why);
	s->complained = true;
	say_err(&out);
}

/* "STATUS\nSIGNATURE\n\nBODY"; NULL: an answer that counts, else why not; "": not yet. */
static const char *judge(const struct hook *h, const struct sent *s, struct answer_said *ret)
{
	char *status = s->out.data, *signature = status ? strchr(status, '\n') : NULL;
	char *end = signature ? strstr(signature + 1, "\n\n") : NULL, hex[SHA256_HEX], id[48];
	struct ward_err e = { 0 };
	size_t n;

	if (!end)
		return "it could not be reached";
	if (strncmp(status, "202", 3) == 0 || strncmp(status, "204", 3) == 0)
		return "";
	if (strncmp(status, "200", 3) != 0)
		return "its status is not 200, 202 or 204";
	n = s->out.len - (size_t)(end + 2 - status);
	hook_sign(&h->key, true, s->nonce, end + 2, n, hex);
	if (strncmp(signature + 1, "v1=", 3) != 0 || end - (signature + 4) != SHA256_HEX - 1)
		return "its answer is not signed";
	*end = '\0';
	if (!hmac_equal(hex, signature + 4))
		return "the signature of its answer is wrong";
	snprintf(id, sizeof(id), "%s:%" PRIu64, s->q.box, s->q.q.id);
	if (answer_read((const uint8_t *)end + 2, n, ret, &e) < 0)
		return "its answer is malformed";
	if (strcmp(ret->id, id) != 0 || (*ret->nonce && strcmp(ret->nonce, s->nonce) != 0))
		return "its answer is to another question";
	return NULL;
}

static void take_answer(struct hook *h, struct sent *s)
{
	struct options o = *h->o;
	struct answer_said said;
	struct ward_err e = { 0 };
	char from[QUESTION_FROM_BYTES];
	const char *why = judge(h, s, &said);

	stop_one(s);
	s->due_ms = io_now_ms() + (why && !*why ? AGAIN_MS : FAILED_MS);
	if (why) {
		if (*why)
			complain(s, why);
		return;
	}
	snprintf(from, sizeof(from), "%.40s%s%.30s", h->from, *said.by ? " by " : "", said.by);
	o.answer_from = from;
	if (said.answer == QUESTION_ALWAYS && !o.yes)
		ward_fail(&e, EACCES, "always needs --yes here: there is no prompt");
	else
		(void)!approve_send(&o, &s->q, said.answer, said.seconds, &e);
	if (e.code)
		complain(s, e.why);
}

/* -- the loop's side */

static bool is_same(const struct client_question *a, const struct client_question *b)
{
	return a->q.id == b->q.id && strcmp(a->box, b->box) == 0;
}

static void add(struct hook *h, const struct client_question *q)
{
	uint8_t random[ANSWER_NONCE / 2];
	struct sent *s = &h->sent[h->count];

	if (h->count == SENT_MAX || getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return; /* the next look tries again */
	*s = (struct sent){ .q = *q, .fd = -1, .seen = true };
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(s->nonce + 2 * i, 3, "%02x", random[i]);
	h->count++;
}

void hook_look(struct hook *h, const struct client_questions *now)
{
	size_t running = 0;

	for (size_t i = 0; i < h->count; i++)
		h->sent[i].seen = false;
	for (size_t i = 0; i < now->len; i++) {
		size_t at = 0;

		while (at < h->count && !is_same(&h->sent[at].q, &now->items[i]))
			at++;
		if (at < h->count)
			h->sent[at].seen = true;
		else
			add(h, &now->items[i]);
	}
	for (size_t i = h->count; i-- > 0;)
		if (!h->sent[i].seen) {
			stop_one(&h->sent[i]);
			h->sent[i] = h->sent[--h->count];
		}
	for (size_t i = 0; i < h->count; i++)
		running += h->sent[i].pid > 0;
	for (size_t i = 0; i < h->count && running < HOOK_POLLS; i++)
		if (!h->sent[i].pid && io_now_ms() >= h->sent[i].due_ms) {
			send_one(h, &h->sent[i]);
			running += h->sent[i].pid > 0;
		}
}

void hook_poll(const struct hook *h, struct pollfd *polled)
{
	size_t n = 0;

	for (size_t i = 0; i < h->count && n < HOOK_POLLS; i++)
		if (h->sent[i].pid > 0)
			polled[n++] = (struct pollfd){ .fd = h->sent[i].fd, .events = POLLIN };
	while (n < HOOK_POLLS)
		polled[n++] = (struct pollfd){ .fd = -1 };
}

void hook_handle(struct hook *h, const struct pollfd *polled)
{
	for (size_t i = 0; i < h->count; i++) {
		struct sent *s = &h->sent[i];
		bool ready = false;
		char bytes[4096];
		ssize_t n;

		for (size_t k = 0; k < HOOK_POLLS; k++)
			ready |= s->pid > 0 && polled[k].fd == s->fd && polled[k].revents;
		if (!ready)
			continue;
		n = read(s->fd, bytes, sizeof(bytes));
		if (n > 0 && s->out.len < ANSWER_MAX)
			buf_add(&s->out, bytes, (size_t)n);
		else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			take_answer(h, s);
	}
}
