/*
 * One word to sandboxes of a server: kill, stop, pause, resume. In: their ids. Out: with --json the
 * ids of those that took it. An error of one keeps the others from nothing.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "policy/units.h"
#include "remote/http.h"

#define STOP_MS 10000 /* between SIGTERM and the end, unless said */
#define LOOK_MS 100

typedef int word_fn(struct remote *r, const char *id, struct ward_err *e);

/* Everything that is asked is asked of all; the code is that of the first that failed. */
static int say_word(struct remote *r, word_fn *word)
{
	struct ward_err e = { 0 };
	auto_strv ids = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE, result = remote_choose(r, &ids, &e);

	if (result < 0)
		return e.code == EINVAL && !r->word_count ? say_error(&e, r->json, EXIT_USAGE)
							  : remote_fail(r, &e);
	json_begin_list(&j, "sandboxes");
	for (size_t i = 0; i < ids.len; i++) {
		struct ward_err own = { 0 };

		result = word(r, ids.items[i], &own);
		if (result < 0 && !(r->all && result == -ENOENT)) {
			code = remote_fail(r, &own);
		} else {
			json_begin_object(&j, NULL);
			json_string(&j, "id", ids.items[i]);
			json_end_object(&j);
		}
	}
	json_end_list(&j);
	return r->json ? say_out(&out, code) : code;
}

static int call(struct remote *r, const char *method, const char *id, const char *what,
		const char *body, struct ward_err *e)
{
	char path[96];

	snprintf(path, sizeof(path), "/sandboxes/%s%s", id, what);
	return http_call(r->http, method, path, NULL, body, NULL, e);
}

static int kill_one(struct remote *r, const char *id, struct ward_err *e)
{
	return call(r, "DELETE", id, "", NULL, e);
}

/* All at once: the server freezes them before it kills the first. */
static int kill_all(struct remote *r)
{
	struct ward_err e = { 0 };
	struct values v = { 0 };
	auto_buf out = { 0 };

	if (http_values(r->http, "POST", "/ward/v1/stop", NULL, "{\"all\":true}", &v, &e) < 0)
		return remote_fail(r, &e);
	if (r->json)
		buf_printf(&out, "{\"stopped\":%llu}\n",
			   (unsigned long long)value_uint(&v, v.items, "stopped"));
	values_free(&v);
	return say_out(&out, EXIT_FINE);
}

int remote_kill(struct remote *r)
{
	return r->all ? kill_all(r) : say_word(r, kill_one);
}

static int pause_one(struct remote *r, const char *id, struct ward_err *e)
{
	return call(r, "POST", id, "/pause", "{}", e);
}

int remote_pause(struct remote *r)
{
	return say_word(r, pause_one);
}

static int resume_one(struct remote *r, const char *id, struct ward_err *e)
{
	return call(r, "POST", id, "/connect", "{}", e);
}

int remote_resume(struct remote *r)
{
	return say_word(r, resume_one);
}

/* -- stop: SIGTERM to what was started in it, and its end when that has ended */

/* How many commands run there; each gets a SIGTERM, if it shall. Negative: an error. */
static int processes(struct remote *r, const struct http_box *box, bool end, struct ward_err *e)
{
	struct values v = { 0 };
	int n = 0, result = http_values(r->http, "POST", "/process.Process/List", box, "{}", &v, e);

	if (result < 0)
		return result;
	for (const struct value *at = value_first(&v, value_get(&v, v.items, "processes")); at;
	     at = value_next(&v, at), n++) {
		struct ward_err ignored = { 0 };
		char body[128];

		snprintf(body, sizeof(body),
			 "{\"process\":{\"pid\":%llu},\"signal\":\"SIGNAL_SIGTERM\"}",
			 (unsigned long long)value_uint(&v, at, "pid"));
		if (end) /* it may have ended by itself */
			(void)!http_call(r->http, "POST", "/process.Process/SendSignal", box, body,
					 NULL, &ignored);
	}
	values_free(&v);
	return n;
}

static int stop_one(struct remote *r, const char *id, struct ward_err *e)
{
	const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };
	struct ward_err ignored = { 0 };
	uint64_t ms = STOP_MS, until;
	struct http_box box;
	int running = 0;

	if (r->grace && units_parse_seconds(r->grace, &ms) < 0)
		ms = STOP_MS; /* remote_stop() has checked it */
	until = io_now_ms() + ms;
	/* one that is paused, or that the key may end and not use, is just ended */
	if (http_open_box(r->http, id, &box, &ignored) == 0)
		running = processes(r, &box, true, &ignored);
	while (running > 0 && io_now_ms() < until) {
		nanosleep(&look, NULL);
		running = processes(r, &box, false, &ignored);
	}
	return kill_one(r, id, e);
}

int remote_stop(struct remote *r)
{
	struct ward_err e = { 0 };
	uint64_t ms;

	if (r->grace && (units_parse_seconds(r->grace, &ms) < 0 || ms > 86400000)) {
		ward_fail(&e, EINVAL, "--timeout %.80s: expected a time of at most a day",
			  r->grace);
		ward_remedy(&e, "for instance --timeout 30, 0.5, 2m");
		return say_error(&e, r->json, EXIT_USAGE);
	}
	return say_word(r, stop_one);
}
