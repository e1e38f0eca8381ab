/*
 * Who did what: a line of JSON for each call of the control plane and for each request to a
 * sandbox, in audit.jsonl of the server's directory, and the former in the log as well. In: a
 * request that was answered. Out: who asked, with which credential and from where, for what, and
 * whether that was allowed or which check refused it. A file that is full is kept as audit.jsonl.1,
 * and another one begun. While it cannot be written (a full disk), calls that give something are
 * refused, and those that see, end or stop something are not. Refusals without a credential are
 * counted, and the first of each second written: a client without a key does not fill the disk.
 *
 * A client with the right AUDIT reads the lines of its owner, a page at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/control_access.h"
#include "envd/query.h"

#define FILE_MAX (64 << 20)
#define PAGE_BYTES (256 * 1024) /* that one call reads */
#define UNKNOWN_PER_S 10
#define RETRY_MS 1000

static const char name[] = "audit.jsonl", old_name[] = "audit.jsonl.1";

static int open_file(struct front *f)
{
	struct stat st;

	own_close_fd(&f->audit_fd);
	f->audit_fd = openat(f->audit_dir_fd, name,
			     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->audit_fd < 0 || fstat(f->audit_fd, &st) < 0)
		return -errno;
	f->audit_size = (uint64_t)st.st_size;
	return 0;
}

int audit_open(struct front *f, const char *dir, struct ward_err *e)
{
	f->audit_fd = -1;
	f->audit_dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->audit_dir_fd < 0 || open_file(f) < 0)
		return ward_fail_errno(e, "cannot open %s/%s", dir, name);
	return 0;
}

/* A line is there as a whole or not at all. */
static bool append(struct front *f, const struct buf *line)
{
	ssize_t n;

	if (f->audit_size + line->len > FILE_MAX &&
	    renameat(f->audit_dir_fd, name, f->audit_dir_fd, old_name) == 0)
		own_close_fd(&f->audit_fd);
	if (f->audit_fd < 0 && open_file(f) < 0)
		return false;
	n = write(f->audit_fd, line->data, line->len);
	if (n == (ssize_t)line->len) {
		f->audit_size += (uint64_t)n;
		return true;
	}
	if (n > 0 && ftruncate(f->audit_fd, (off_t)f->audit_size) < 0)
		own_close_fd(&f->audit_fd);
	return false;
}

static void put(struct front *f, const char *kind, const struct buf *fields)
{
	auto_buf line = { 0 };
	struct json j = { .out = &line };

	json_begin_object(&j, NULL);
	show_time(&j, "time", front_now_ms());
	json_string(&j, "kind", kind);
	buf_add(&line, buf_text(fields), fields->len);
	json_end_object(&j);
	buf_puts(&line, "\n");
	if (!line.failed && append(f, &line)) {
		f->audit_broken = false;
		return;
	}
	if (!f->audit_broken)
		front_log_text("audit_error", "why", strerror(errno));
	f->audit_broken = true;
	f->audit_retry_ms = io_now_ms() + RETRY_MS;
}

/* A disk that was full may have room again: a line says so, and that lines are missing. */
bool audit_works(struct front *f)
{
	auto_buf fields = { 0 };

	if (f->audit_broken && io_now_ms() >= f->audit_retry_ms) {
		buf_puts(&fields, ",\"why\":\"lines before this one are missing\"");
		put(f, "audit_gap", &fields);
	}
	return !f->audit_broken;
}

static void add(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	json_quote(out, value);
}

static void add_span(struct buf *out, const char *key, struct http_text t)
{
	auto_free char *value = t.s ? strndup(t.s, t.n < 512 ? t.n : 512) : NULL;

	add(out, key, value ? value : "");
}

static void add_source(struct buf *out, const struct conn *c)
{
	char text[HOST_TEXT];

	add(out, "source", ip_text(&c->source_ip, text));
}

/* How many refusals without a credential are left out before this one; false: so is this one. */
static bool take_unknown(struct front *f, struct buf *out)
{
	uint64_t now = io_now_ms();

	if (now - f->unknown_ms >= 1000) {
		if (f->unknown_count > UNKNOWN_PER_S)
			buf_printf(out, ",\"left_out\":%u", f->unknown_count - UNKNOWN_PER_S);
		f->unknown_ms = now;
		f->unknown_count = 0;
	}
	return ++f->unknown_count <= UNKNOWN_PER_S;
}

void audit_call(struct conn *c)
{
	auto_buf fields = { 0 };
	bool known = c->who;

	add_span(&fields, "method", c->http.req.method);
	add_span(&fields, "path", c->http.req.path);
	add(&fields, "call", route_name(c->verb));
	if (*c->sandbox)
		add(&fields, "on", c->sandbox);
	add(&fields, "owner", known ? c->owner : "");
	if (known) {
		add(&fields, "credential", c->who->own.id);
		add(&fields, "role", access_role_name(c->who->own.role));
	}
	add_source(&fields, c);
	buf_printf(&fields, ",\"allowed\":%s", c->denied == ACCESS_ALLOWED ? "true" : "false");
	if (c->denied != ACCESS_ALLOWED)
		add(&fields, "refused_by",
		    c->denied == ACCESS_CHECKS ? "credential" : access_check_name(c->denied));
	buf_printf(&fields, ",\"status\":%u,\"us\":%llu", c->status,
		   (unsigned long long)(front_now_us() - c->began_us));
	if (!known && !take_unknown(c->front, &fields))
		return;
	front_log("request", &fields);
	put(c->front, "request", &fields);
}

void audit_sandbox_request(struct conn *c, const struct sandbox *s)
{
	auto_buf fields = { 0 };

	add_span(&fields, "method", c->http.req.method);
	add_span(&fields, "path",
		 c->http.req.path); /* without the query: it may have a signature */
	add(&fields, "on", s->id);
	buf_printf(&fields, ",\"port\":%u", c->to.port);
	add(&fields, "owner", s->owner);
	if (*c->token_id)
		add(&fields, "credential", c->token_id);
	add_source(&fields, c);
	buf_puts(&fields, ",\"allowed\":true");
	put(c->front, "sandbox_request", &fields);
}

/* -- reading */

struct page {
	uint64_t from, next; /* bytes of the file */
	bool old, end;
	struct buf lines;
};

/* Whether the line is about the owner: its member "owner", which stands in each once, behind texts
 * in which no quote is unescaped. */
static bool is_about(const char *line, size_t n, const char *owner)
{
	auto_buf wanted = { 0 };

	if (strcmp(owner, ALL_OWNERS) == 0)
		return true;
	buf_puts(&wanted, ",\"owner\":");
	json_quote(&wanted, owner);
	buf_puts(&wanted, ",");
	return !wanted.failed && memmem(line, n, wanted.data, wanted.len);
}

static int read_page(struct front *f, const char *owner, struct page *p)
{
	auto_fd fd = openat(f->audit_dir_fd, p->old ? old_name : name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_free char *bytes = malloc(PAGE_BYTES);
	const char *at, *end;
	ssize_t n;

	if (fd < 0 && errno == ENOENT) {
		p->end = true;
		return 0;
	}
	if (fd < 0 || !bytes)
		return -EIO;
	n = pread(fd, bytes, PAGE_BYTES, (off_t)p->from);
	if (n < 0)
		return -errno;
	p->next = p->from;
	for (at = bytes; (end = memchr(at, '\n', (size_t)(bytes + n - at))); at = end + 1) {
		size_t len = (size_t)(end - at);

		if (is_about(at, len, owner)) {
			buf_puts(&p->lines, p->lines.len ? "," : "");
			buf_add(&p->lines, at, len);
		}
		p->next = p->from + (uint64_t)(end + 1 - bytes);
	}
	p->end = p->next == p->from;
	return 0;
}

static bool read_cursor(const struct conn *c, struct page *p)
{
	auto_buf text = { 0 };
	int r = query_get(c->http.req.query.s, c->http.req.query.n, "cursor", &text);
	const char *at = buf_text(&text);

	if (r <= 0)
		return r == 0;
	p->old = strncmp(at, "old-", 4) == 0;
	at += p->old ? 4 : 0;
	if (!*at || strlen(at) > 12 || at[strspn(at, "0123456789")])
		return false;
	p->from = strtoull(at, NULL, 10);
	return true;
}

void control_audit(struct conn *c)
{
	struct page p = { 0 };
	auto_buf body = { 0 };

	if (!read_cursor(c, &p)) {
		conn_refuse(c, 400,
			    "cursor: as \"next\" of the page before, or old-0 for what is "
			    "older than the present file");
	} else if (read_page(c->front, c->owner, &p) < 0 || p.lines.failed) {
		conn_refuse(c, 503, "the audit log cannot be read now");
	} else {
		buf_puts(&body, "{\"events\":[");
		buf_add(&body, buf_text(&p.lines), p.lines.len);
		buf_printf(&body, "],\"next\":\"%s%llu\",\"end\":%s}", p.old ? "old-" : "",
			   (unsigned long long)p.next, p.end ? "true" : "false");
		conn_answer(c, 200, "application/json", &body, NULL);
	}
	buf_free(&p.lines);
}
