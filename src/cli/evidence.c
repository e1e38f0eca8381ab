/*
 * ward evidence: what can be known about a sandbox from outside, before it is destroyed. In: a
 * sandbox that lives; it is frozen first, and stays so. Out: a tar archive with its processes
 * (status, memory maps, open files, what they run), its sockets and mounts, the files that have
 * changed since it began, its output, its journal so far, and a manifest with a SHA-256 of each
 * member. The digest of the archive goes into the user's journal, whose chain and signatures
 * (ward audit seal) then cover it: an archive that was changed afterwards has another digest.
 *
 * Nothing is asked of the sandbox and nothing runs inside. All that is read was written by a
 * hostile program: it is copied, never interpreted; files are opened beneath their directory,
 * through no link, and only regular ones. What cannot be read is a member that says why. Run by
 * ward-explain with the user's rights; works when the disk of the state directory is full and the
 * journal is dead: then the archive lacks those parts, and says so.
 */
#include "cli/evidence.h"
#include "cli/evidence_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/index.h"
#include "base/io.h"
#include "cli/boxes.h"
#include "cli/explain_parts.h"
#include "event/event.h"
#include "state/log.h"

static int add_about(struct archive *a, const struct box_info *i, struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	json_begin_object(&j, NULL);
	boxes_json(&j, i);
	json_end_object(&j);
	buf_puts(&out, "\n");
	return archive_add(a, "sandbox.json", buf_text(&out), out.len, e);
}

/* The journal so far. A dead one is no reason to stop. */
static int add_journal(struct archive *a, const char *run, struct ward_err *e)
{
	struct ward_err why = { 0 };
	auto_strv files = { 0 };
	auto_fd audit = place_open(false, &why);
	bool live = false;
	int r = 0;

	if (audit < 0)
		return archive_add(a, "journal/UNREADABLE", why.why, strlen(why.why), e);
	lines_files(audit, run, &files, &live);
	for (size_t i = 0; i < files.len && r == 0; i++) {
		const char *slash = strrchr(files.items[i], '/');
		char name[128];

		snprintf(name, sizeof(name), "journal/%.100s", slash ? slash + 1 : files.items[i]);
		r = archive_add_file(a, name, audit, files.items[i], e);
	}
	return r;
}

static int add_output(struct archive *a, const struct box_info *i, struct ward_err *e)
{
	struct ward_err why = { 0 };
	auto_fd dir = i->foreground ? -1 : boxes_open_dir(i->id, &why);
	int r = 0;

	if (dir < 0)
		return 0;
	if (faccessat(dir, LOG_BEFORE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = archive_add_file(a, "output.old.log", dir, LOG_BEFORE, e);
	return r < 0 ? r : archive_add_file(a, "output.log", dir, LOG_NOW, e);
}

static int collect(struct archive *a, const struct box_info *i, struct ward_err *e)
{
	int r = add_about(a, i, e);

	if (r == 0)
		r = evidence_processes(a, i->pid, e);
	if (r == 0)
		r = add_journal(a, i->id, e);
	if (r == 0)
		r = add_output(a, i, e);
	if (r == 0 && i->started_ms)
		r = evidence_files(a, &i->writable, i->started_ms, e);
	return r;
}

/* On record with its digest; if that fails, a note says so, and the archive remains. */
static void put_on_record(const struct box_info *i, const char *path, const struct archive *a,
			  const char *digest)
{
	struct ward_event v = event_make(EVENT_STATE, ACTION_LOG, path);
	struct ward_err e = { 0 };

	event_text(&v, FIELD_CHANGE, "evidence");
	event_text(&v, FIELD_NAME, i->id);
	event_number(&v, FIELD_UID, (uint64_t)getuid());
	event_number(&v, FIELD_BYTES, a->bytes);
	event_text(&v, FIELD_DIGEST, digest);
	if (index_report(&v, &e) < 0) {
		ward_wrap(&e, "the archive is complete, but its digest is not on record");
		(void)say_error(&e, false, EXIT_REFUSED);
	}
}

/* A state directory that is full, or gone, is no reason to lose the archive. */
static void sign(const char *file, const char *digest)
{
	struct ward_err e = { 0 };

	if (evidence_sign(file, digest, &e) == 0)
		return;
	ward_wrap(&e, "the archive is complete, but not signed");
	(void)say_error(&e, false, EXIT_REFUSED);
}

static int report(const struct options *o, const struct box_info *i, const struct archive *a,
		  const char *digest)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "sandbox", i->id);
		json_string(&j, "file", o->output);
		json_uint(&j, "bytes", a->bytes);
		json_string(&j, "sha256", digest);
		json_bool(&j, "complete", !a->full && !a->partial);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else {
		buf_printf(
			&out,
			"%s  %s\n%s is paused; to go on: ward resume %s; to end it: ward kill %s\n",
			digest, o->output, i->id, i->id, i->id);
		if (a->full)
			buf_puts(&out, "not everything fitted: MANIFEST lists what is there\n");
		if (a->partial)
			buf_puts(&out, "not everything could be read: files/DIRECTORIES and the "
				       "members UNREADABLE say what\n");
	}
	return say_out(&out, EXIT_FINE);
}

static int write_archive(const struct options *o, const struct box_info *i, struct ward_err *e)
{
	struct archive a = { .time_s = (uint64_t)time(NULL) };
	char digest[SHA256_HEX];
	auto_fd fd = open(o->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0) {
		ward_fail(e, errno, "cannot make %.300s: %s", o->output, strerror(errno));
		return errno == EEXIST ? ward_remedy(e, "name a file that is not there yet")
				       : -e->code;
	}
	a.fd = fd;
	sha256_begin(&a.digest);
	r = boxes_freeze(i, e);
	if (r == 0)
		r = collect(&a, i, e);
	if (r == 0)
		r = archive_end(&a, digest, e);
	buf_free(&a.manifest);
	if (r < 0) {
		(void)unlink(o->output);
		return r;
	}
	put_on_record(i, o->output, &a, digest);
	sign(o->output, digest);
	return report(o, i, &a, digest);
}

int evidence_collect(struct options *o)
{
	struct box_info info = { 0 };
	struct ward_err e = { 0 };
	int r;

	if (o->verify)
		return evidence_verify(o);
	if (!o->output) {
		ward_fail(&e, EINVAL, "no file was named");
		ward_remedy(&e, "ward evidence %s -o FILE.tar", o->words[0]);
		return say_usage(&e, o);
	}
	r = client_find_alive(o->words[0], &info, &e);
	if (r == 0)
		r = write_archive(o, &info, &e);
	box_info_clear(&info);
	return r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : r;
}
