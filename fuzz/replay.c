/*
 * Fuzzes the replay matcher: a policy up to the first NUL, then a line of a journal. Whatever it
 * is: no crash, no leak, the same verdict twice, and a reason that cannot act on a terminal. What
 * was done is never gained and what was refused never lost; a connection that the new rules refuse
 * is lost exactly if it was allowed before, and gained exactly if they allow it and it had been
 * refused for want of a rule.
 */
#include <assert.h>
#include <string.h>

#include "cli/replay_judge.h"
#include "event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct plan_mount mounts[] = {
	{ .kind = MOUNT_BIND, .source = "/usr", .target = "/usr" },
	{ .kind = MOUNT_LINK, .source = "usr/bin", .target = "/bin" },
	{ .kind = MOUNT_LINK, .source = "loop", .target = "/loop" },
	{ .kind = MOUNT_TMPFS, .target = "/tmp", .writable = true, .noexec = true },
	{ .kind = MOUNT_FILE, .source = "x", .target = "/etc/passwd" },
	{ .kind = MOUNT_BIND, .source = "/srv", .target = "/srv", .writable = true },
	{ .kind = MOUNT_BIND, .source = "/srv/ro", .target = "/srv/ro" },
};

static void check_text(const struct buf *text)
{
	for (size_t i = 0; i < text->len; i++)
		assert((unsigned char)text->data[i] >= 0x20 && text->data[i] != 0x7f);
}

static enum replay_verdict judge(const struct replay *r, const struct ward_event *v)
{
	struct buf why = { 0 }, again = { 0 };
	enum replay_verdict verdict = replay_judge(r, v, &why);

	assert(replay_judge(r, v, &again) == verdict &&
	       strcmp(buf_text(&why), buf_text(&again)) == 0);
	assert(verdict == REPLAY_SAME || why.len);
	check_text(&why);
	assert(verdict != REPLAY_GAINED || v->action == ACTION_DENY);
	assert(verdict != REPLAY_LOST || v->action != ACTION_DENY || v->kind == EVENT_RUN_END);
	buf_free(&why);
	buf_free(&again);
	return verdict;
}

/* The same connection, let through and refused: the new rules say one thing. */
static void check_both(const struct replay *r, struct ward_event v)
{
	enum replay_verdict done, refused;

	if (v.kind != EVENT_CONNECT || event_get(&v, FIELD_HOW) || event_get(&v, FIELD_ADDRESS) ||
	    event_get(&v, FIELD_MODE) || v.count + 2 > EVENT_VALUES_MAX)
		return;
	event_text(&v, FIELD_REASON, "not_listed");
	v.action = ACTION_ALLOW;
	done = judge(r, &v);
	v.action = ACTION_DENY;
	refused = judge(r, &v);
	assert(done == REPLAY_UNSURE ? refused == REPLAY_SAME
				     : (done == REPLAY_LOST) != (refused == REPLAY_GAINED));
}

static void check_path(const struct path_view *w, const char *path)
{
	enum path_view_access access = path_view_find(w, path, NULL);

	if (strncmp(path, "/srv/ro/", 8) == 0 && !strstr(path, ".."))
		assert(access != PATH_VIEW_WRITE);
	if (*path != '/')
		assert(access == PATH_VIEW_ABSENT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char scratch[EVENT_LINE_MAX];
	const uint8_t *nul = n < 32768 ? memchr(data, '\0', n) : NULL;
	const struct path_view view = { .mounts = mounts, .mount_count = ARRAY_LEN(mounts) };
	uint64_t limits[LIMITS];
	struct replay r = { .view = &view, .limits = limits, .workspace = "/srv" };
	struct policy_errors errors = { 0 };
	struct ward_err e = { 0 };
	struct rules *rules = NULL;
	struct ward_event v;
	struct policy p;

	if (!nul ||
	    !event_decode((const char *)nul + 1, n - (size_t)(nul + 1 - data), scratch, &v, NULL))
		return 0;
	assert(policy_defaults(&p, &e) == 0);
	if (policy_read(&p, "f.yaml", data, (size_t)(nul - data), POLICY_FILE, &errors) == 0 &&
	    rules_compile(&p, 1, &rules, &e) == 0) {
		for (size_t i = 0; i < LIMITS; i++)
			limits[i] = i % 2 ? POLICY_NONE : 1000;
		r.policy = &p;
		r.rules = rules;
		judge(&r, &v);
		check_both(&r, v);
		if (event_get(&v, FIELD_OBJECT)) {
			char *path = strndup(event_get(&v, FIELD_OBJECT)->text,
					     event_get(&v, FIELD_OBJECT)->len);

			check_path(&view, path);
			free(path);
		}
		r.view = NULL;
		r.limits = NULL;
		judge(&r, &v);
	}
	rules_free(rules);
	policy_clear(&p);
	strv_free(&errors.lines);
	return 0;
}
