/*
 * Verifying. In: STATE/audit, which may have been tampered with. Out: what is wrong with it, each
 * with its file and line. Run by ward-audit; changes nothing.
 *
 * The index is read first: its own chain, its signatures, and from it what is known about each
 * journal (begun, how far at a time, ended, removed). Then the journals: the chain of each, from
 * its first file to its last, and at each point that the index knows its head must be that one. So
 * a changed, missing, swapped or added line is found in its file; a tail that was cut off or a
 * chain that was written anew is found by the index; an index that was written anew by its
 * signatures. That the index goes on as far as it ever did is known from its mark (mark.h), from
 * the file that tells of a signature, and from an entry that the operator has noted elsewhere; that
 * something is not there is a fault.
 */
#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/mark.h"
#include "event/event.h"

#define FAULTS_KEPT 1000

/* One word of the index about a journal. */
struct verify_entry {
	char run[48];
	uint8_t kind; /* JOURNAL_BEGIN, HEAD, END, PRUNE */
	uint64_t at;  /* its place in the index: entries of a run stay in their order */
	uint64_t events;
	uint8_t head[CHAIN_BYTES];
};

static void add_fault(struct verify *v, const char *file, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void add_fault(struct verify *v, const char *file, uint64_t line, const char *format, ...)
{
	struct verify_fault *grown =
		v->fault_count < FAULTS_KEPT
			? reallocarray(v->faults, v->fault_count + 1, sizeof(*grown))
			: NULL;
	va_list arguments;

	if (!grown) {
		v->failed |= v->fault_count < FAULTS_KEPT;
		return;
	}
	v->faults = grown;
	grown += v->fault_count++;
	*grown = (struct verify_fault){ .line = line };
	snprintf(grown->file, sizeof(grown->file), "%s", file);
	va_start(arguments, format);
	vsnprintf(grown->what, sizeof(grown->what), format, arguments);
	va_end(arguments);
}

/* -- a chain over one or more files */

struct walk {
	struct verify *v;
	struct chain chain;
	uint64_t last_us; /* time of the last line that was good, for people */
	/* Sees each good line; the chain is after it. */
	void (*see)(struct walk *w, const struct lines *l, const char *line, size_t n,
		    const struct chain *before);
	const char *run;
	size_t entry; /* of the run: the next one that tells a head */
	struct {
		const struct chain *must; /* an entry of the index; NULL: none */
		bool found;
	} known[2];
	bool marked; /* there is an entry with which the index was marked */
};

static void fault_of(struct walk *w, const struct lines *l, const char *line, size_t n,
		     enum chain_fault fault)
{
	unsigned long long claimed = 0;

	if (fault == CHAIN_NUMBER && n > 7 && sscanf(line, "{\"seq\":%20llu", &claimed) == 1 &&
	    claimed > w->chain.seq + 1)
		add_fault(w->v, l->name, l->number,
			  "expected event %" PRIu64
			  " here, found event %llu: lines were removed or moved",
			  w->chain.seq + 1, claimed);
	else if (fault == CHAIN_NUMBER)
		add_fault(w->v, l->name, l->number,
			  "expected event %" PRIu64
			  " here, found event %llu: lines were added or moved",
			  w->chain.seq + 1, claimed);
	else if (fault == CHAIN_SHAPE)
		add_fault(w->v, l->name, l->number,
			  "not a journal line; expected event %" PRIu64 " here", w->chain.seq + 1);
	else
		add_fault(w->v, l->name, l->number,
			  "event %" PRIu64 " was changed, or does not follow the line before it",
			  w->chain.seq + 1);
}

/* One file. False: the chain is broken, what follows cannot be judged. */
static bool walk_file(struct walk *w, const char *name, bool live)
{
	struct lines l;
	const char *line;
	size_t n;
	int r = lines_open(&l, w->v->audit_fd, name);

	if (r < 0) {
		add_fault(w->v, name, 0, "cannot read it: %s", strerror(-r));
		return false;
	}
	while ((r = lines_next(&l, &line, &n)) > 0) {
		struct chain before = w->chain;
		enum chain_fault fault = chain_check(&w->chain, line, n);

		if (fault != CHAIN_FINE) {
			fault_of(w, &l, line, n, fault);
			lines_close(&l);
			return false;
		}
		w->v->events++;
		w->v->bytes += n;
		w->see(w, &l, line, n, &before);
	}
	if (r < 0)
		add_fault(w->v, name, l.number + 1, "not a journal line: it is too long");
	else if (l.at < l.len && !live)
		add_fault(w->v, name, l.number + 1, "the last line is truncated");
	r = r < 0 || (l.at < l.len && !live) ? -1 : 0;
	lines_close(&l);
	return r == 0;
}

/* -- the index */

static const char *text_of(const struct ward_event *e, enum event_field f, size_t *ret_len)
{
	const struct event_value *value = event_get(e, f);

	*ret_len = value ? value->len : 0;
	return value ? value->text : "";
}

static void see_checkpoint(struct walk *w, const struct lines *l, const struct ward_event *e,
			   const struct chain *before)
{
	struct verify *v = w->v;
	uint8_t key[SIGN_KEY], signature[SIGN_BYTES], head[CHAIN_BYTES];
	size_t key_len, signature_len, head_len;
	const char *key_hex = text_of(e, FIELD_KEY, &key_len),
		   *signature_hex = text_of(e, FIELD_SIGNATURE, &signature_len);
	const char *head_hex = text_of(e, FIELD_OBJECT, &head_len);

	v->checkpoints++;
	v->unsigned_entries = 0;
	if (!chain_unhex(key_hex, key_len, key, SIGN_KEY) ||
	    !chain_unhex(signature_hex, signature_len, signature, SIGN_BYTES) ||
	    !chain_unhex(head_hex, head_len, head, CHAIN_BYTES)) {
		add_fault(v, l->name, l->number, "a checkpoint without key or signature");
		return;
	}
	if (memcmp(head, before->head, CHAIN_BYTES) != 0 ||
	    !sign_check(key, before->head, signature))
		add_fault(v, l->name, l->number,
			  "the signature of this checkpoint does not match the lines above it");
	else if (v->pinned && memcmp(key, v->pinned, SIGN_KEY) != 0)
		add_fault(v, l->name, l->number, "signed by a different key than the one given");
	else if (v->key[0] && memcmp(v->key, key_hex, SIGN_KEY_HEX - 1) != 0)
		add_fault(
			v, l->name, l->number,
			"signed by a different key than earlier checkpoints: the key was replaced");
	else
		event_time_text(e->time_us, v->signed_until);
	if (!v->key[0])
		memcpy(v->key, key_hex, SIGN_KEY_HEX - 1);
}

static void add_entry(struct verify *v, const struct ward_event *e)
{
	struct verify_entry *entry;
	const char *head;
	size_t len;

	if (v->entry_count == v->entry_cap) {
		size_t cap = v->entry_cap ? v->entry_cap * 2 : 64;
		struct verify_entry *grown = reallocarray(v->entries, cap, sizeof(*grown));

		if (!grown) {
			v->failed = true;
			return;
		}
		v->entries = grown;
		v->entry_cap = cap;
	}
	entry = &v->entries[v->entry_count];
	*entry = (struct verify_entry){ .kind = e->kind, .at = v->entry_count };
	snprintf(entry->run, sizeof(entry->run), "%s", e->run);
	entry->events = event_get(e, FIELD_EVENTS) ? event_get(e, FIELD_EVENTS)->number : 0;
	head = text_of(e, FIELD_HEAD, &len);
	if (!chain_unhex(head, len, entry->head, CHAIN_BYTES))
		memset(entry->head, 0, CHAIN_BYTES);
	v->entry_count++;
}

static void see_index(struct walk *w, const struct lines *l, const char *line, size_t n,
		      const struct chain *before)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event e;

	w->v->unsigned_entries++;
	for (size_t i = 0; i < ARRAY_LEN(w->known); i++)
		if (w->known[i].must && w->known[i].must->seq == w->chain.seq)
			w->known[i].found =
				memcmp(w->known[i].must->head, w->chain.head, CHAIN_BYTES) == 0;
	if (!event_decode(line, n, scratch, &e, NULL)) {
		add_fault(w->v, l->name, l->number,
			  "a line that follows the one before it, but is not an event that this "
			  "version knows");
		return;
	}
	w->marked |= e.kind == EVENT_JOURNAL_END || e.kind == EVENT_JOURNAL_PRUNE ||
		     e.kind == EVENT_JOURNAL_CHECKPOINT;
	if (e.kind == EVENT_JOURNAL_CHECKPOINT)
		see_checkpoint(w, l, &e, before);
	else if (e.kind == EVENT_JOURNAL_GAP)
		add_fault(w->v, l->name, l->number,
			  "index entries are missing here: the index was truncated or replaced");
	else if (e.run && (e.kind == EVENT_JOURNAL_BEGIN || e.kind == EVENT_JOURNAL_HEAD ||
			   e.kind == EVENT_JOURNAL_END || e.kind == EVENT_JOURNAL_PRUNE))
		add_entry(w->v, &e);
}

static int compare_entries(const void *a, const void *b)
{
	const struct verify_entry *x = a, *y = b;
	int order = strcmp(x->run, y->run);

	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* What there is beside the index as soon as it was signed. */
struct seal {
	bool sealed, public, private;
};

/* Reads while no process signs: the checkpoint and what tells of it are written under one lock. */
static struct seal look_at_seal(int audit_fd)
{
	auto_fd fd = openat(audit_fd, PLACE_INDEX, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	/* where that fails, the look may see one in the making: at worst a fault too many */
	int locked = fd < 0 ? -1 : place_share(fd);
	struct stat st;

	(void)locked;
	return (struct seal){ .sealed = fstatat(audit_fd, PLACE_SEALED, &st, AT_SYMLINK_NOFOLLOW) ==
					0,
			      .public = fstatat(audit_fd, "key.pub", &st, AT_SYMLINK_NOFOLLOW) == 0,
			      .private = fstatat(audit_fd, "key", &st, AT_SYMLINK_NOFOLLOW) == 0 };
}

/* Signatures and what tells of them: neither is there without the other. before: how it was before
 * the index was read. */
static void check_seal(struct verify *v, const struct seal *before)
{
	struct seal after = look_at_seal(v->audit_fd);
	struct ward_err e = { 0 };
	char hex[SIGN_KEY_HEX];
	bool signs = v->checkpoints > 0;

	if (sign_public(v->audit_fd, hex, &e) == 0) {
		if (v->key[0] && strcmp(hex, v->key) != 0)
			add_fault(v, "key.pub", 0,
				  "not the key that signed the checkpoints: it was replaced");
	} else if (v->key[0] || e.code != ENOENT) {
		add_fault(v, "key.pub", 0, "%s",
			  e.code == ENOENT ? "the key is missing, although checkpoints were signed"
					   : e.why);
	}
	if (signs && !after.sealed)
		add_fault(v, PLACE_SEALED, 0,
			  "the key is missing, although checkpoints were signed");
	if (!signs && (before->sealed || before->public))
		add_fault(
			v, PLACE_INDEX, 0,
			"the signatures are missing: the index was signed, but has no checkpoint");
	if (signs && !after.private)
		strv_add(&v->notes,
			 "the private key is missing: ward can sign nothing more with it");
}

/* Whether the index is there, and goes on as far as it ever did. r: what came of reading the
 * mark. */
static void check_reach(const struct walk *w, int r, const struct chain *mark)
{
	struct verify *v = w->v;

	if (!w->chain.seq)
		add_fault(v, PLACE_INDEX, 0, "the index is empty or missing: nothing is proven");
	if (r == -ENOENT && w->marked)
		add_fault(v, "../" MARK_NAME, 0,
			  "it is missing: nothing shows how long the index was (copy it together "
			  "with the directory audit)");
	else if (r < 0 && r != -ENOENT)
		add_fault(v, "../" MARK_NAME, 0, "it does not show how long the index was: %s",
			  r == -EBADMSG ? "invalid line" : strerror(-r));
	else if (r == 0 && !w->known[0].found)
		add_fault(v, PLACE_INDEX, 0,
			  "entry %" PRIu64
			  " was written but is missing: the index was truncated or replaced",
			  mark->seq);
	if (v->noted && !w->known[1].found)
		add_fault(v, PLACE_INDEX, 0,
			  "entry %" PRIu64 " is not the one given with --head: this is a different "
			  "history, or its end was cut off",
			  v->noted->seq);
}

void verify_index(struct verify *v)
{
	struct walk w = { .v = v, .see = see_index };
	struct chain mark;
	auto_strv files = { 0 };
	int r = mark_get(v->audit_fd, &mark); /* first: meanwhile the index only grows */
	struct seal before = look_at_seal(v->audit_fd);
	bool live;

	w.known[0].must = r == 0 ? &mark : NULL;
	w.known[1].must = v->noted;
	v->began_us = event_now_us();
	lines_files(v->audit_fd, NULL, &files, &live);
	for (size_t i = 0; i < files.len; i++)
		if (!walk_file(&w, files.items[i], false))
			break;
	v->head = w.chain;
	if (v->entry_count)
		qsort(v->entries, v->entry_count, sizeof(v->entries[0]), compare_entries);
	check_reach(&w, r, &mark);
	check_seal(v, &before);
}

/* -- journals */

/* The first entry of a run; entry_count: there is none. */
static size_t find_entry(const struct verify *v, const char *run)
{
	size_t low = 0, high = v->entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(v->entries[middle].run, run) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < v->entry_count && strcmp(v->entries[low].run, run) == 0 ? low : v->entry_count;
}

static bool is_of(const struct verify *v, size_t i, const char *run)
{
	return i < v->entry_count && strcmp(v->entries[i].run, run) == 0;
}

/* Past the words of the index that are about what was read already. */
static void skip_reported(struct walk *w)
{
	const struct verify *v = w->v;

	while (is_of(v, w->entry, w->run) && (v->entries[w->entry].kind == EVENT_JOURNAL_BEGIN ||
					      v->entries[w->entry].kind == EVENT_JOURNAL_PRUNE))
		w->entry++;
}

static void see_run(struct walk *w, const struct lines *l, unused_arg const char *line,
		    unused_arg size_t n, unused_arg const struct chain *before)
{
	struct verify *v = w->v;

	for (skip_reported(w);
	     is_of(v, w->entry, w->run) && v->entries[w->entry].events == w->chain.seq;
	     w->entry++, skip_reported(w))
		if (memcmp(v->entries[w->entry].head, w->chain.head, CHAIN_BYTES) != 0) {
			add_fault(v, l->name, l->number,
				  "event %" PRIu64 " has a different hash than in the index: the "
				  "journal was rewritten",
				  w->chain.seq);
			w->entry = v->entry_count;
		}
}

static bool is_written(int audit_fd, const char *name)
{
	auto_fd fd = openat(audit_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static uint64_t changed_us(int audit_fd, const char *name)
{
	struct stat st;

	if (fstatat(audit_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_ctim.tv_sec * 1000000 + (uint64_t)st.st_ctim.tv_nsec / 1000;
}

/* What the index knows beyond the journal's end. */
static void check_end(struct walk *w, const char *name, uint64_t events, bool live)
{
	struct verify *v = w->v;
	uint64_t most = 0;
	bool ended = false;

	for (size_t i = find_entry(v, w->run); is_of(v, i, w->run); i++) {
		most = v->entries[i].events > most ? v->entries[i].events : most;
		ended = v->entries[i].kind == EVENT_JOURNAL_END ||
			(ended && v->entries[i].kind == EVENT_JOURNAL_PRUNE);
	}
	if (!events && !live)
		add_fault(v, name, 0, "it is empty");
	else if (most > events)
		add_fault(v, name, 0,
			  "it ends with event %" PRIu64 ", but the index has %" PRIu64
			  ": its tail was cut off",
			  events, most);
	else if (ended && events > most)
		add_fault(v, name, 0,
			  "it ends with event %" PRIu64 ", but the index has %" PRIu64
			  ": lines were added",
			  events, most);
	else if (!ended && !live && changed_us(v->audit_fd, name) + 10000 < v->began_us)
		add_fault(v, name, 0, "the index does not record its end");
	else if (live && !is_written(v->audit_fd, name))
		strv_addf(&v->notes, "%s: its writer was killed; ward recover finishes it", name);
	else if (live)
		strv_addf(&v->notes, "%s: still being written", name);
}

void verify_run(struct verify *v, const char *run)
{
	struct walk w = { .v = v, .see = see_run, .run = run, .entry = find_entry(v, run) };
	auto_strv files = { 0 };
	bool live, whole = true;

	lines_files(v->audit_fd, run, &files, &live);
	v->failed |= files.failed;
	v->journals++;
	if (!files.len) {
		add_fault(v, run, 0, "there is no such journal%s",
			  w.entry < v->entry_count ? ", but the index lists it: it was removed"
						   : "");
		return;
	}
	if (w.entry == v->entry_count)
		add_fault(v, files.items[files.len - 1], 0, "the index does not list this journal");
	for (size_t i = 0; i < files.len && whole; i++)
		whole = walk_file(&w, files.items[i], live && i + 1 == files.len);
	if (whole && find_entry(v, run) < v->entry_count)
		check_end(&w, files.items[files.len - 1], w.chain.seq, live);
}

/* Journals that the index knows, that were not removed by ward audit prune, and that are not
 * there. */
static void find_missing(struct verify *v, const struct strv *runs)
{
	for (size_t i = 0, at = 0; i < v->entry_count;) {
		const char *run = v->entries[i].run;
		bool pruned = false;

		for (; is_of(v, i, run); i++)
			pruned = v->entries[i].kind == EVENT_JOURNAL_PRUNE;
		while (at < runs->len && strcmp(runs->items[at], run) < 0)
			at++;
		v->pruned += pruned;
		if (!pruned && (at == runs->len || strcmp(runs->items[at], run) != 0))
			add_fault(
				v, run, 0,
				"the index lists this journal, but it is missing: it was removed");
	}
}

int verify_all(struct verify *v, struct ward_err *e)
{
	auto_strv runs = { 0 };
	int r;

	/* first: of what begins meanwhile the index would know nothing */
	r = lines_runs(v->audit_fd, &runs, e);
	if (r < 0)
		return r;
	verify_index(v);
	for (size_t i = 0; i < runs.len; i++)
		verify_run(v, runs.items[i]);
	find_missing(v, &runs);
	return 0;
}

void verify_clear(struct verify *v)
{
	free(v->faults);
	free(v->entries);
	strv_free(&v->notes);
	*v = (struct verify){ .audit_fd = -1 };
}
