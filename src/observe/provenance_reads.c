/*
 * Which files of the user's a run has opened for reading (audit.level: full). In: opens that were
 * seen (observe.h). Out: file.read, one for each path: who opened it first. Only what a mount of
 * the policy shows counts: the workspace, host mounts, caches; the system's own files are left
 * out, because every program opens hundreds of them. The sandbox chooses the paths, so there are at
 * most READS_MAX of them; the rest is counted and told as a gap. An open may have failed: a path is
 * told when the host has a file there and the plan does not hide it. Observed, not proven. Runs in
 * the supervisor, with provenance.c.
 */
#include "observe/provenance_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "event/event.h"
#include "plan/path_view.h"

#define READ_SLOTS (READS_MAX * 2)

struct reads {
	struct read {
		char *path; /* owned */
		uint32_t process;
	} list[READS_MAX];
	uint32_t count, reported;
	uint32_t slots[READ_SLOTS]; /* by path: index + 1 */
	uint64_t lost;
};

/* FNV-1a. */
static uint32_t slot_of(const char *path)
{
	uint64_t key = 0xcbf29ce484222325;

	for (; *path; path++)
		key = (key ^ (unsigned char)*path) * 0x100000001b3;
	return (uint32_t)(key >> 16) % READ_SLOTS;
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

void provenance_read(struct provenance *v, const char *path, uint32_t process)
{
	struct reads *r = v->reads;
	uint32_t at;

	if (*path != '/' || !mount_of(v->plan, path))
		return;
	if (!r)
		r = v->reads = calloc(1, sizeof(*r));
	if (!r)
		return;
	for (at = slot_of(path); r->slots[at]; at = (at + 1) % READ_SLOTS)
		if (strcmp(r->list[r->slots[at] - 1].path, path) == 0)
			return;
	if (r->count == READS_MAX) {
		r->lost++;
		return;
	}
	if (!provenance_take_room(v, strlen(path) + 1))
		return;
	r->list[r->count].path = strdup(path);
	if (!r->list[r->count].path)
		return;
	r->list[r->count].process = process;
	r->slots[at] = ++r->count;
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

void provenance_tell_reads(struct provenance *v, struct result *r, bool end)
{
	struct reads *reads = v->reads;

	if (!reads)
		return;
	for (; reads->reported < reads->count; reads->reported++)
		if (is_file(v, reads->list[reads->reported].path))
			tell_read(v, &reads->list[reads->reported], r);
	if (end && reads->lost) {
		struct ward_event e = event_make(EVENT_JOURNAL_GAP, ACTION_LOG, "files read");

		event_text(&e, FIELD_WHY, "more files were read than ward records");
		event_number(&e, FIELD_LOST, reads->lost);
		event_emit(r->events, &e);
	}
}

void provenance_free_reads(struct provenance *v)
{
	for (uint32_t i = 0; v->reads && i < v->reads->count; i++)
		free(v->reads->list[i].path);
	free(v->reads);
}
