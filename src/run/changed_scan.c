/*
 * Secrets in what a run has changed. In: the workspace, or the layer of changes of a review. Out:
 * events and notes. ward-scan looks, when no process of the sandbox is left: at every file whose
 * inode changed since the run began, a time that no process inside can set back. Nothing is removed
 * or stopped here: under block ward apply refuses the changes (cli/look.c).
 */
#include "run/changed_scan.h"

#include <fcntl.h>
#include <unistd.h>

#include "event/event.h"
#include "event/result.h"
#include "model/guard.h"
#include "review/look.h"

#define TIMEOUT_MS (10 * 60 * 1000)
#define EVENTS_MAX 100

static void tell(const struct look_finding *x, struct result *r)
{
	struct ward_event v = event_make(EVENT_CREDENTIAL_FOUND, ACTION_LOG, x->rule);
	auto_buf text = { 0 };

	event_text(&v, FIELD_PATH, x->path);
	event_text(&v, FIELD_WHY, "in a file that the run changed");
	event_text(&v, FIELD_LEVEL, look_severity_name(x->severity));
	event_emit(r->events, &v);
	buf_printf(&text, "%s in %s", x->rule, x->path);
	if (x->line)
		buf_printf(&text, ":%llu", (unsigned long long)x->line);
	result_secret(r, buf_text(&text));
}

void changed_scan(const struct plan *p, int upper_fd, struct result *r)
{
	struct look_request q = { .new_fd = upper_fd,
				  .old_fd = -1,
				  .since_ns = p->live->root_count ? p->live->roots[0].since_ns : 0,
				  .personal = p->spec->policy.cred_scan_personal,
				  .timeout_ms = TIMEOUT_MS };
	struct look_findings found = { 0 };
	struct ward_err e = { 0 };
	auto_fd own = -1;

	/* without a root nothing of the workspace can have changed */
	if (SCAN_MODE_TREE(&p->spec->policy) == SCAN_TREE_OFF || r->refused || !q.since_ns)
		return;
	if (upper_fd < 0) {
		own = open(p->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		q.new_fd = own;
	}
	if (q.new_fd < 0 || look_run(&q, &found, &e) < 0) {
		strv_addf(&r->notes, "the changed files were not looked through for secrets: %s",
			  e.why[0] ? e.why : "the workspace cannot be opened");
		return;
	}
	for (size_t i = 0; i < found.len && i < EVENTS_MAX; i++)
		tell(&found.items[i], r);
	if (found.len > EVENTS_MAX)
		strv_addf(&r->notes,
			  "secrets: %zu more places in changed files; ward scan lists them",
			  found.len - EVENTS_MAX);
	look_clear(&found);
}
