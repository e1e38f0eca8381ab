/*
 * ward audit verify: says whether journals are what was written, and where not. In: the journals
 * and their index. Out: each fault with its file and line; exit status 1 when there is any. Changes
 * nothing. Run by ward-audit.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "audit/mark.h"
#include "audit/verify.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"

/* --key: 64 digits, or a file that holds them. */
static int read_key(const char *text, uint8_t ret[SIGN_KEY], struct ward_err *e)
{
	auto_buf file = { 0 };

	if (chain_unhex(text, strlen(text), ret, SIGN_KEY))
		return 0;
	if (io_read_file(AT_FDCWD, text, 256, &file) == 0 && file.len >= SIGN_KEY_HEX - 1 &&
	    chain_unhex(file.data, SIGN_KEY_HEX - 1, ret, SIGN_KEY))
		return 0;
	ward_fail(e, EINVAL,
		  "--key %.200s: neither a public key (64 digits) nor a file that contains one",
		  text);
	return ward_remedy(e, "ward audit key prints it on the machine that signed");
}

static void put_json(const struct verify *v, struct buf *out)
{
	struct json j = { .out = out };
	char head[MARK_TEXT];

	json_begin_object(&j, NULL);
	json_bool(&j, "good", v->fault_count == 0 && !v->failed);
	json_uint(&j, "journals", v->journals);
	json_uint(&j, "events", v->events);
	json_uint(&j, "checkpoints", v->checkpoints);
	json_uint(&j, "unsigned", v->unsigned_entries);
	json_string(&j, "key", v->key[0] ? v->key : NULL);
	json_string(&j, "signed_until", v->signed_until[0] ? v->signed_until : NULL);
	json_bool(&j, "key_named", v->pinned != NULL);
	json_uint(&j, "pruned", v->pruned);
	mark_text(&v->head, head);
	json_string(&j, "head", v->head.seq ? head : NULL);
	json_begin_array(&j, "faults");
	for (size_t i = 0; i < v->fault_count; i++) {
		json_begin_object(&j, NULL);
		json_string(&j, "file", v->faults[i].file);
		json_uint(&j, "line", v->faults[i].line);
		json_string(&j, "what", v->faults[i].what);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_begin_array(&j, "notes");
	for (size_t i = 0; i < v->notes.len; i++)
		json_string(&j, NULL, v->notes.items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* What was proven, and what was not. */
static void put_proof(const struct verify *v, struct buf *out)
{
	char head[MARK_TEXT];

	if (v->pruned)
		buf_printf(out,
			   "the index records %" PRIu64 " journal%s removed by ward audit prune\n",
			   v->pruned, v->pruned == 1 ? "" : "s");
	if (v->pinned && !v->fault_count)
		buf_printf(out,
			   "--key proves that all checkpoints, and so everything before the last "
			   "one, were signed with that key; it does not prove who held the key "
			   "(anyone with this user's rights can), nor anything about the %" PRIu64
			   " entries since\n",
			   v->unsigned_entries);
	if (!v->head.seq)
		return;
	mark_text(&v->head, head);
	buf_printf(out, "head %s\n", head);
}

static void put_text(const struct verify *v, struct buf *out)
{
	for (size_t i = 0; i < v->fault_count; i++) {
		const struct verify_fault *f = &v->faults[i];

		text_escape(out, f->file);
		if (f->line)
			buf_printf(out, ":%" PRIu64, f->line);
		buf_printf(out, ": %s\n", f->what);
	}
	for (size_t i = 0; i < v->notes.len; i++)
		buf_printf(out, "note: %s\n", v->notes.items[i]);
	buf_printf(out, "%s: %" PRIu64 " journal%s, %" PRIu64 " events; ",
		   v->fault_count ? "NOT what was written" : "good", v->journals,
		   v->journals == 1 ? "" : "s", v->events);
	if (v->key[0] && v->signed_until[0])
		buf_printf(out, "signed until %s by %.16s..., %" PRIu64 " index entries since\n",
			   v->signed_until, v->key, v->unsigned_entries);
	else
		buf_puts(out, "nothing is signed yet; to sign the journal: ward audit seal\n");
	put_proof(v, out);
}

/* --key and --head. */
static int read_wishes(const struct options *o, struct verify *v, uint8_t key[SIGN_KEY],
		       struct chain *noted, struct ward_err *e)
{
	if (o->key && read_key(o->key, key, e) < 0)
		return -e->code;
	v->pinned = o->key ? key : NULL;
	if (o->head && !mark_read(o->head, strlen(o->head), noted)) {
		ward_fail(e, EINVAL, "--head %.120s: not ENTRY:HASH", o->head);
		return ward_remedy(e, "give the head that ward audit verify printed");
	}
	v->noted = o->head ? noted : NULL;
	return 0;
}

int audit_verify(struct options *o, int audit_fd)
{
	struct verify v = { .audit_fd = audit_fd };
	auto_free char *run = NULL;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	uint8_t key[SIGN_KEY];
	struct chain noted;
	bool all = o->all || !o->words[1];
	int r = 0, code;

	if (read_wishes(o, &v, key, &noted, &e) < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	if (all)
		r = verify_all(&v, &e);
	else
		r = audit_find_run(audit_fd, o->words[1], &run, &e);
	if (r == 0 && !all) {
		verify_index(&v);
		verify_run(&v, run);
	}
	if (r == 0 && v.failed)
		r = ward_fail(&e, ENOMEM, "out of memory: nothing is proven");
	if (r == 0 && v.pinned && !v.key[0])
		r = ward_fail(&e, ENOENT, "--key: nothing is signed");
	if (r < 0) {
		verify_clear(&v);
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	if (o->json)
		put_json(&v, &out);
	else
		put_text(&v, &out);
	code = v.fault_count ? EXIT_FINDINGS : EXIT_FINE;
	verify_clear(&v);
	return say_out(&out, code);
}
