/*
 * Which files of the user's a run has opened for reading (audit.level: full). In: opens that were
 * seen (observe.h). Out: file.read, one for each path: who opened it first. Only what a mount of
 * the policy shows counts: the workspace, host mounts, caches; the system's own files are left out,
 * because every program opens hundreds of them. The sandbox chooses the paths, so at most READS_MAX
 * of them are reported by name, and of the others the first of each label of watch.labels; the rest
 * is reported as a number. An open may have failed: a path is reported when the host has a file
 * there and the plan does not hide it. Observed, not proven. Runs in the supervisor, with
 * provenance.c.
 */
#include "observe/provenance_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alarm/alarm.h"
#include "base/path.h"
#include "event/event.h"
#include "plan/path_view.h"
#include "policy/policy_watch.h"

#define LIST_MAX (READS_MAX + WATCH_LABELS_MAX)
#define MORE_MAX 65536 /* paths beyond the list that are told apart; those beyond all count */

struct reads {
	struct read {
		char *path; /* owned */
		uint32_t process;
	} list[LIST_MAX];
	uint32_t count, reported;
	uint64_t seen[2 * (READS_MAX + MORE_MAX)]; /* hashes of paths; 0: free */
	uint32_t seen_count;
	uint64_t more; /* files beyond the list, not reported yet */
	struct policy_label labels[WATCH_LABELS_MAX];
	size_t label_count;
	bool used[WATCH_LABELS_MAX]; /* a path of the label was reported */
};

/* FNV-1a; never 0. */
static uint64_t hash_of(const char *path)
{
	uint64_t key = 0xcbf29ce484222325;

	for (; *path; path++)
		key = (key ^ (unsigned char)*path) * 0x100000001b3;
	return key ? key : 1;
}

/* False: it was seen before. Where there is no more room, everything is new. */
static bool is_new(struct reads *r, const char *path)
{
	uint64_t key = hash_of(path);
	size_t at = key % ARRAY_LEN(r->seen);

	for (; r->seen[at]; at = (at + 1) % ARRAY_LEN(r->seen))
		if (r->seen[at] == key)
			return false;
	if (r->seen_count == READS_MAX + MORE_MAX)
		return true;
	r->seen[at] = key;
	r->seen_count++;
	return true;
}

/* The mount that shows the path, if it is one of the policy's. The last one that covers it wins. */
static const struct plan_mount *mount_of(const struct plan *p, const char *path)
{
	for (size_t i = p->mount_count; i-- > 0;)
		if (path_is_beneath(path, p->mounts[i].target))
			return p->mounts[i].kind == MOUNT_BIND && p->mounts[i].from_policy
				       ? &p->mounts[i]
				       : NULL;
	return NULL;
}

static struct reads *make_reads(const struct policy *p)
{
	struct reads *r = calloc(1, sizeof(*r));
	struct ward_err ignored = { 0 };

	for (size_t i = 0; r && i < p->watch_labels.len && i < WATCH_LABELS_MAX; i++)
		if (policy_label_read(p->watch_labels.items[i], &r->labels[r->label_count],
				      &ignored) == 0)
			r->label_count++;
	return r;
}

/* A regular file that the sandbox could see under that path. */
static bool is_file(const struct provenance *v, const char *path)
{
	const struct plan_mount *m = mount_of(v->plan, path);
	const struct path_view view = path_view_of(v->plan);
	const char *workspace = v->plan->workspace;
	char place[PATH_MAX];
	struct stat st;

	if (!m || path_view_find(&view, path, NULL) == PATH_VIEW_HIDDEN)
		return false;
	if (v->upper_fd >= 0 && path_is_beneath(path, workspace) && path[strlen(workspace)] &&
	    fstatat(v->upper_fd, path + strlen(workspace) + 1, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return S_ISREG(st.st_mode);
	if ((size_t)snprintf(place, sizeof(place), "%s%s", m->source, path + strlen(m->target)) >=
	    sizeof(place))
		return false;
	return fstatat(AT_FDCWD, place, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
	       (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* Whether the path is the first one of a label that was not used yet. One that nothing is behind
 * uses up nothing. */
static bool is_labelled(const struct provenance *v, const char *path)
{
	struct reads *r = v->reads;
	bool first = false;

	for (size_t i = 0; i < r->label_count; i++)
		if (!r->used[i] && alarm_is_labelled(&r->labels[i], v->plan->workspace, path) &&
		    is_file(v, path))
			r->used[i] = first = true;
	return first;
}

void provenance_read(struct provenance *v, const char *path, uint32_t process)
{
	struct reads *r = v->reads;
	bool labelled;

	if (*path != '/' || !mount_of(v->plan, path))
		return;
	if (!r)
		r = v->reads = make_reads(&v->plan->spec->policy);
	if (!r)
		return;
	labelled = is_labelled(v, path);
	if (!is_new(r, path) && !labelled)
		return;
	if (r->count < (labelled ? LIST_MAX : READS_MAX))
		r->list[r->count].path = strdup(path);
	if (r->count == LIST_MAX || !r->list[r->count].path) {
		r->more++;
		return;
	}
	r->list[r->count++].process = process;
}

static void tell_read(const struct provenance *v, const struct read *read, struct result *r)
{
	const struct process *p = &v->processes[read->process];
	struct ward_event e = event_make(EVENT_FILE_READ, ACTION_LOG, read->path);

	if (p->inner > 0)
		event_number(&e, FIELD_PID, (uint64_t)p->inner);
	if (p->parent_inner > 0)
		event_number(&e, FIELD_PPID, (uint64_t)p->parent_inner);
	event_text(&e, FIELD_EXE, p->exe);
	event_flag(&e, FIELD_OBSERVED);
	event_emit(r->events, &e);
}

static void tell_more(struct reads *reads, struct result *r)
{
	struct ward_event e =
		event_make(EVENT_FILE_READ, ACTION_LOG, "more of them, too many to list");

	if (!reads->more)
		return;
	event_flag(&e, FIELD_OBSERVED);
	event_number(&e, FIELD_COUNT, reads->more);
	event_emit(r->events, &e);
	reads->more = 0;
}

void provenance_tell_reads(struct provenance *v, struct result *r, bool whole)
{
	struct reads *reads = v->reads;

	if (!reads)
		return;
	for (; reads->reported < reads->count; reads->reported++)
		if (is_file(v, reads->list[reads->reported].path))
			tell_read(v, &reads->list[reads->reported], r);
	if (whole)
		tell_more(reads, r);
}

void provenance_free_reads(struct provenance *v)
{
	for (uint32_t i = 0; v->reads && i < v->reads->count; i++)
		free(v->reads->list[i].path);
	for (size_t i = 0; v->reads && i < v->reads->label_count; i++)
		policy_label_clear(&v->reads->labels[i]);
	free(v->reads);
}
