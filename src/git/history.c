/*
 * What commits bring. In: the ids in refs, reflogs and state files that the sandbox changed. Out:
 * which of the commits behind them are held. Runs in ward-git, once the objects are on the host:
 * git on the host's side lists the new commits and what each changes.
 *
 * New is what no ref of the host's leads to, those below refs/ward aside. A commit is held that
 * changes something under a protected name, as compared to all its parents, unless the newest
 * commit of one of the host's branches has exactly that there; and a commit that leads to a held
 * one, as a parent or as the commit of a submodule, which `git submodule update` checks out. Only
 * names are looked at, so a merge or rebase of the user's own commits is none of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/path.h"
#include "git/protect.h"
#include "rules/git_ref.h"

#define WORDS_MAX 20000
#define TRIES_MAX 200    /* ids that are examined one by one */
#define EXAMINE_MS 60000 /* for all of that, in one taking of a repository */
#define TREES_MAX 50     /* refs of trees that are examined */
#define UNKNOWN "what ward could not examine"

struct history {
	struct take *t;
	const char *git_dir, *tree;
	const char *prefix; /* of the repository in the view */
	int64_t until_ms;
	struct buf text;     /* what git said; the rest points into it */
	struct strv commits; /* "ID PARENT..", parents first */
	struct doubts doubts;
	struct doubts links; /* commits of submodules */
};

static int out_of_memory(struct take *t)
{
	return ward_fail(t->e, ENOMEM, "out of memory");
}

static bool is_zero(const char *id, size_t n)
{
	return strspn(id, "0") >= n;
}

/* Appends every full id that the text has. */
static void add_ids(struct buf *ids, const char *text, size_t n, size_t digits)
{
	for (size_t at = 0; at < n;) {
		size_t len = 0;

		while (at + len < n && strchr("0123456789abcdef", text[at + len]) && text[at + len])
			len++;
		if (len == digits && !is_zero(text + at, digits))
			buf_printf(ids, "%.*s\n", (int)digits, text + at);
		at += len + 1;
	}
}

/* Files that name commits in other ways, too. */
static bool has_words(enum git_form form)
{
	return form == GIT_FORM_TODO || form == GIT_FORM_SHORT_ID || form == GIT_FORM_FIXUPS ||
	       form == GIT_FORM_BISECT_START || form == GIT_FORM_BISECT_LOG;
}

static bool has_ids(const char *path, enum git_form form)
{
	/* a rebase by patches names its commits there */
	if (form == GIT_FORM_TEXT)
		return strstr(path, "rebase-apply/");
	return form != GIT_FORM_INDEX && form != GIT_FORM_CONFIG && form != GIT_FORM_DATA &&
	       form != GIT_FORM_LFS;
}

static size_t digits_of(const struct take *t)
{
	return (size_t)t->hash * 2;
}

/* Asks git on the host for the full ids of words, which lead to commits or not. */
static int resolve_words(const struct take *t, const char *git_dir, const char *text, size_t n,
			 struct buf *ids)
{
	static const char *const words[] = { "cat-file", "--batch-check=%(objectname)", NULL };
	auto_buf asked = { 0 }, answer = { 0 };
	struct git_call call = { .git_dir = git_dir, .words = words };
	size_t count = 0;
	int status;

	for (size_t at = 0; at < n && count < WORDS_MAX; count++) {
		size_t len = 0;

		while (at + len < n && !strchr(" \t\n'\"", text[at + len]))
			len++;
		if (len)
			buf_printf(&asked, "%.*s^{commit}\n", (int)len, text + at);
		at += len + 1;
	}
	if (asked.failed)
		return -ENOMEM;
	call.input = asked.data;
	call.input_n = asked.len;
	status = asked.len ? git_call(&call, &answer) : 0;
	if (status == 0)
		add_ids(ids, buf_text(&answer), answer.len, digits_of(t));
	return status ? -EIO : ids->failed ? -ENOMEM : 0;
}

/* Every id that the sandbox's files of the repository name and the base does not. */
static int collect(struct history *h, const char *prefix, struct buf *ids)
{
	struct take *t = h->t;
	int status = 0;

	for (size_t i = 0; i < t->view.len && status == 0; i++) {
		const struct file *v = &t->view.items[i], *b = files_find(&t->base, v->path);
		struct git_place place = git_path_find(v->path, GIT_DIR_MAIN, t->hash, false);
		size_t own = b && v->n >= b->n && memcmp(v->bytes, b->bytes, b->n) == 0 ? b->n : 0;

		if (strncmp(v->path, prefix, strlen(prefix)) != 0 || files_equal(v, b))
			continue;
		if (has_ids(v->path, place.form))
			add_ids(ids, v->bytes + own, v->n - own, digits_of(t));
		if (has_words(place.form))
			status = resolve_words(t, h->git_dir, v->bytes, v->n, ids);
	}
	return status < 0 ? status : ids->failed ? -ENOMEM : 0;
}

/* What the host's work trees had checked out counts as the host's own, too. */
static void add_own(const struct take *t, const char *prefix, struct buf *ids)
{
	for (size_t i = 0; i < t->base.len; i++) {
		const struct file *b = &t->base.items[i];
		const char *id;
		size_t n;

		if (strncmp(b->path, prefix, strlen(prefix)) == 0 &&
		    git_path_find(b->path, GIT_DIR_MAIN, t->hash, false).form == GIT_FORM_HEAD &&
		    git_head_read(b->bytes, b->n, t->hash, &id, &n) == GIT_REF_ID)
			buf_printf(ids, "^%.*s\n", (int)n, id);
	}
}

/* The new commits, parents first, each with what it changes. */
static int ask(struct history *h, const struct buf *ids)
{
	static const char *const words[] = { "-c",
					     "log.showRoot=true",
					     "-c",
					     "diff.orderFile=/dev/null",
					     "log",
					     "-c",
					     "--raw",
					     "-z",
					     "--no-renames",
					     "--no-abbrev",
					     "--no-relative",
					     "--ignore-submodules=none",
					     "--no-ext-diff",
					     "--no-textconv",
					     "--no-show-signature",
					     "--no-notes",
					     "--no-decorate",
					     "--no-color",
					     "--topo-order",
					     "--reverse",
					     "--format=%H %P",
					     "--ignore-missing",
					     "--stdin",
					     "--not",
					     "--exclude=refs/ward/*",
					     "--glob=refs/*",
					     NULL };
	struct git_call call = { .git_dir = h->git_dir,
				 .words = words,
				 .input = ids->data,
				 .input_n = ids->len,
				 .until_ms = h->until_ms };

	return git_call(&call, &h->text);
}

/* ":MODE MODE ID ID STATUS", or with a colon, a mode and an id for each parent. The last ones are
 * the commit's. */
static int read_change(struct history *h, char *record, const char *path)
{
	size_t parents = strspn(record, ":"), at = 0;
	const char *id = "";
	unsigned long mode = 0;
	char *word;

	record += parents;
	while ((word = strsep(&record, " "))) {
		if (at == parents)
			mode = strtoul(word, NULL, 8);
		if (at == 2 * parents + 1)
			id = word;
		at++;
	}
	if (!h->commits.len || strlen(id) != digits_of(h->t))
		return -EPROTO;
	if (mode == GIT_MODE_GITLINK && doubts_add(&h->links, h->commits.len - 1, id, path) < 0)
		return -ENOMEM;
	return protect_has(h->t, h->tree, path, (unsigned)mode)
		       ? doubts_add(&h->doubts, h->commits.len - 1, id, path)
		       : 0;
}

static int read_answer(struct history *h)
{
	char *at = h->text.data, *end = at + h->text.len;
	int status = 0;

	while (at && at < end && status == 0) {
		char *token = at, *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul)
			return -EPROTO;
		at = nul + 1;
		token += *token == '\n';
		if (*token == ':') {
			nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
			status = nul ? read_change(h, token, at) : -EPROTO;
			at = nul ? nul + 1 : end;
		} else if (*token) {
			strv_add(&h->commits, token);
		}
	}
	return h->commits.failed ? -ENOMEM : status;
}

static int compare_held(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Where in a sorted list the text stands that begins with the id; n: nowhere. */
static size_t find_id(char *const *sorted, size_t n, const char *id, size_t digits)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(sorted[middle], id, digits);

		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return n;
}

const char *history_fault(const struct take *t, const char *id, size_t n)
{
	size_t at = n == digits_of(t) ? find_id(t->held.items, t->held.len, id, n) : t->held.len;

	return at < t->held.len ? t->held.items[at] + n + 1 : NULL;
}

const char *history_fault_in(const struct take *t, const struct file *f)
{
	struct git_place place = git_path_find(f->path, GIT_DIR_MAIN, t->hash, false);
	auto_buf ids = { 0 };
	auto_free char *git_dir = NULL;
	const char *why = NULL;

	if (!t->held.len || !has_ids(f->path, place.form))
		return NULL;
	if (asprintf(&git_dir, "%s/%.*s", t->record.git_dir,
		     strncmp(f->path, "worktrees/", 10) == 0 ? 0 : (int)place.inner, f->path) < 0) {
		git_dir = NULL;
		return f->path;
	}
	add_ids(&ids, f->bytes, f->n, digits_of(t));
	if (has_words(place.form) && resolve_words(t, git_dir, f->bytes, f->n, &ids) < 0)
		return f->path;
	for (size_t at = 0; at < ids.len && !why; at += digits_of(t) + 1)
		why = history_fault(t, ids.data + at, digits_of(t));
	return ids.failed ? f->path : why;
}

/* Which of the commits are held; parents come first. */
static int hold(struct history *h, struct strv *held)
{
	size_t digits = digits_of(h->t), n = h->commits.len;
	auto_free const char **why = calloc(n + 1, sizeof(*why));
	auto_free char **sorted = calloc(n + 1, sizeof(*sorted));
	auto_free const char **reason = calloc(n + 1, sizeof(*reason));

	if (!why || !sorted || !reason)
		return -ENOMEM;
	for (size_t i = 0; i < h->doubts.len; i++) {
		const struct doubt *one = &h->doubts.items[i];

		if (!one->known && !why[one->of])
			why[one->of] = one->path;
	}
	memcpy(sorted, h->commits.items, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_held);
	for (size_t i = 0; i < n; i++) {
		const char *commit = h->commits.items[i];
		char **own = bsearch(&commit, sorted, n, sizeof(*sorted), compare_held);

		for (const char *p = strchr(commit, ' '); p && p[1] && !why[i];
		     p = strchr(p + 1, ' ')) {
			size_t at = find_id(sorted, n, p + 1, digits);

			if (at < n)
				why[i] = reason[at];
		}
		if (!why[i] || !own)
			continue;
		reason[own - sorted] = why[i];
		strv_addf(held, "%.*s\t%s", (int)digits, commit, why[i]);
	}
	return held->failed ? -ENOMEM : 0;
}

static void history_clear(struct history *h)
{
	buf_free(&h->text);
	strv_free(&h->commits);
	doubts_clear(&h->doubts);
	doubts_clear(&h->links);
}

static int judge_ids(const struct history *one, const struct buf *ids);

/* Judges commits of submodules in the repository of one, as far as it has them. 1: git fails. */
static int judge_in_module(struct take *t, const char *prefix, int64_t until_ms,
			   const struct buf *links)
{
	struct history h = { .t = t, .prefix = prefix, .until_ms = until_ms };
	auto_free char *git_dir = NULL, *tree = NULL;
	auto_buf ids = { 0 };
	int status = protect_open(t, prefix, &tree);

	if (status < 0)
		return status;
	if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0) {
		git_dir = NULL;
		return -ENOMEM;
	}
	h.git_dir = git_dir;
	h.tree = tree;
	buf_add(&ids, links->data, links->len);
	add_own(t, prefix, &ids);
	return ids.failed ? -ENOMEM : judge_ids(&h, &ids);
}

static bool is_held(const struct take *t, const char *id)
{
	size_t n = digits_of(t);

	/* not sorted here */
	for (size_t i = 0; i < t->held.len; i++)
		if (strncmp(t->held.items[i], id, n) == 0)
			return true;
	return false;
}

/* Adds the held ones among commits of submodules (one on a line) of the repository at prefix. */
static int judge_links(struct take *t, const char *prefix, int64_t until_ms,
		       const struct buf *links)
{
	size_t n = strlen(prefix);
	int status = 0;

	for (size_t i = 0; i < t->repositories.len && status == 0 && links->len; i++) {
		const char *module = t->repositories.items[i];

		if (strncmp(module, prefix, n) == 0 && strncmp(module + n, "modules/", 8) == 0)
			status = judge_in_module(t, module, until_ms, links);
	}
	return status;
}

/* The same where a submodule has its repository in its own work tree. That one has a view of its
 * own, which is taken over first. */
static int judge_in_place(struct take *t, const char *tree, const struct doubt *link,
			  int64_t until_ms)
{
	struct history h = { .t = t, .prefix = "\n", .until_ms = until_ms };
	auto_free char *inside = NULL, *git_dir = NULL;
	auto_fd root = open(t->record.host_root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	auto_buf ids = { 0 };
	struct ward_err e = { 0 };

	if (asprintf(&inside, "%s%s%s", tree, *tree ? "/" : "", link->path) < 0 ||
	    asprintf(&git_dir, "%s/%s/.git", t->record.host_root, inside) < 0)
		return -ENOMEM;
	fd = path_open_nolink(root, git_dir + strlen(t->record.host_root) + 1, O_PATH | O_DIRECTORY,
			      &e);
	if (fd < 0)
		return 0;
	h.git_dir = git_dir;
	h.tree = inside;
	buf_printf(&ids, "%s\n", link->id);
	if (ids.failed)
		return -ENOMEM;
	return judge_ids(&h, &ids);
}

/* A commit of a submodule that is held there is a doubt about the commit that names it. */
static int doubt_links(struct history *h)
{
	auto_buf ids = { 0 };
	int status;

	for (size_t i = 0; i < h->links.len; i++)
		buf_printf(&ids, "%s\n", h->links.items[i].id);
	status = ids.failed ? -ENOMEM : judge_links(h->t, h->prefix, h->until_ms, &ids);
	for (size_t i = 0; i < h->links.len && status == 0; i++)
		status = judge_in_place(h->t, h->tree, &h->links.items[i], h->until_ms);
	for (size_t i = 0; i < h->links.len && status == 0; i++) {
		const struct doubt *link = &h->links.items[i];

		if (is_held(h->t, link->id))
			status = doubts_add(&h->doubts, link->of, link->id, link->path);
	}
	return status;
}

int history_link_fault(struct take *t, const char *prefix, const char *tree,
		       const struct doubt *link)
{
	int64_t until_ms = now_ms() + EXAMINE_MS;
	auto_buf line = { 0 };
	int status;

	if (t->live)
		return 1;
	buf_printf(&line, "%s\n", link->id);
	status = line.failed ? -ENOMEM : judge_links(t, prefix, until_ms, &line);
	if (status == 0)
		status = judge_in_place(t, tree, link, until_ms);
	strv_sort(&t->held);
	return status < 0 ? status : status > 0 || is_held(t, link->id);
}

/* Adds the held commits among those that the ids (one on a line) lead to. 1: git fails. */
static int judge_ids(const struct history *one, const struct buf *ids)
{
	struct history h = *one;
	int status = ask(&h, ids);

	if (status == 0)
		status = read_answer(&h);
	/* commits of submodules come at the end, and what names them no sooner */
	if (status == 0 && h.links.len)
		status = h.t->live ? 1 : doubt_links(&h);
	if (status == 0 && h.doubts.len)
		status = doubts_clear_known(h.t, h.git_dir, NULL, &h.doubts);
	if (status == 0 && h.doubts.len)
		status = hold(&h, &h.t->held);
	history_clear(&h);
	return status == -ENOMEM ? status : status != 0;
}

/* One id at a time, where git fails for all of them together: each that cannot be examined is held.
 * What is not complete has no reason (refs are refused for that). */
static int judge_each(const struct history *h, const struct buf *ids, size_t digits)
{
	struct strv *held = &h->t->held;
	size_t tries = 0;

	for (const char *at = buf_text(ids); *at; at = strchr(at, '\n') + 1) {
		auto_buf one = { 0 };
		bool tried;
		int status = 1;

		if (*at == '^')
			continue;
		buf_printf(&one, "%.*s\n", (int)digits, at);
		if (one.failed)
			return -ENOMEM;
		tried = tries++ < TRIES_MAX && now_ms() < h->until_ms;
		if (tried && !ids_complete(h->git_dir, one.data)) {
			strv_addf(held, "%.*s\t", (int)digits, at);
			continue;
		}
		if (tried)
			status = judge_ids(h, &one);
		if (status < 0)
			return status;
		if (status > 0)
			strv_addf(held, "%.*s\t" UNKNOWN, (int)digits, at);
	}
	return held->failed ? -ENOMEM : 0;
}

/* The first path in a tree that is protected and not the user's own, for the caller to free; NULL:
 * none. */
static int find_in_tree(struct history *h, const char *tree, char **ret_path)
{
	const char *words[] = { "ls-tree", "-r", "-z", "--full-tree", tree, NULL };
	struct git_call call = { .git_dir = h->git_dir, .words = words, .until_ms = h->until_ms };
	struct doubts d = { 0 };
	auto_buf text = { 0 };
	int status = git_call(&call, &text);

	*ret_path = status > 0 ? strdup(UNKNOWN) : NULL;
	if (status)
		return status < 0 || !*ret_path ? -ENOMEM : 0;
	for (char *at = text.data, *end = at + text.len; at && at < end && status == 0;
	     at += strlen(at) + 1) {
		const char *path = strchr(at, '\t'), *id = strchr(at, ' ');
		unsigned mode = (unsigned)strtoul(at, NULL, 8);

		id = id ? strchr(id + 1, ' ') : NULL;
		if (!path || !id || !protect_has(h->t, h->tree, path + 1, mode))
			continue;
		at[path - at] = '\0';
		status = doubts_add(&d, 0, id + 1, path + 1);
		at[path - at] = '\t';
	}
	if (status == 0 && d.len)
		status = doubts_clear_known(h->t, h->git_dir, NULL, &d);
	for (size_t i = 0; i < d.len && status == 0 && !*ret_path; i++)
		if (!d.items[i].known) {
			*ret_path = strdup(d.items[i].path);
			status = *ret_path ? 0 : -ENOMEM;
		}
	doubts_clear(&d);
	return status;
}

/* What an id leads to that is no commit itself. "TYPE ID" is what it is without its tags. */
static int hold_tag(struct history *h, const char *id, char *peeled, size_t *trees,
		    struct strv *tags)
{
	size_t digits = digits_of(h->t);
	auto_free char *path = NULL;
	char *target = strchr(peeled, ' ');
	int status = 0;

	if (!target || strlen(target + 1) != digits)
		return 0;
	*target++ = '\0';
	if (strcmp(peeled, "commit") == 0) {
		const char *why = history_fault(h->t, target, digits);

		if (why && strncmp(id, target, digits) != 0)
			strv_addf(tags, "%.*s\t%s", (int)digits, id, why);
	} else if (strcmp(peeled, "tree") == 0) {
		if (++*trees <= TREES_MAX)
			status = find_in_tree(h, target, &path);
		if (path || *trees > TREES_MAX)
			strv_addf(tags, "%.*s\t%s", (int)digits, id, path ? path : UNKNOWN);
	}
	return status;
}

/* Tags of held commits are held, too, and refs of trees: git writes files from these as well. */
static int hold_tags(struct history *h, const struct buf *ids)
{
	static const char *const words[] = { "cat-file",
					     "--batch-check=%(objecttype) %(objectname)", NULL };
	auto_buf asked = { 0 }, answer = { 0 };
	struct git_call call = { .git_dir = h->git_dir, .words = words };
	size_t digits = digits_of(h->t), trees = 0;
	auto_strv tags = { 0 };
	int status;
	char *rest;

	for (const char *at = buf_text(ids); *at; at = strchr(at, '\n') + 1)
		if (*at != '^')
			buf_printf(&asked, "%.*s^{}\n", (int)digits, at);
	call.input = asked.data;
	call.input_n = asked.len;
	status = asked.failed ? -ENOMEM : asked.len ? git_call(&call, &answer) : 0;
	rest = answer.data;
	for (const char *at = buf_text(ids); status == 0 && *at; at = strchr(at, '\n') + 1) {
		char *line = *at == '^' || !rest ? NULL : strsep(&rest, "\n");

		if (line)
			status = hold_tag(h, at, line, &trees, &tags);
	}
	for (size_t i = 0; i < tags.len; i++)
		strv_add(&h->t->held, tags.items[i]);
	return status > 0 ? -EIO : h->t->held.failed || tags.failed ? -ENOMEM : status;
}

int judge_history(struct take *t, const char *prefix)
{
	struct history h = { .t = t, .prefix = prefix, .until_ms = now_ms() + EXAMINE_MS };
	auto_free char *git_dir = NULL, *tree = NULL;
	size_t digits = digits_of(t);
	auto_buf ids = { 0 };
	int status;

	if (asprintf(&git_dir, "%s/%s", t->record.git_dir, prefix) < 0) {
		git_dir = NULL;
		return out_of_memory(t);
	}
	h.git_dir = git_dir;
	status = collect(&h, prefix, &ids);
	if (status == 0 && ids.len) {
		status = protect_open(t, prefix, &tree);
		if (status < 0)
			return status;
		add_own(t, prefix, &ids);
		h.tree = tree;
		status = ids.failed ? -ENOMEM : judge_ids(&h, &ids);
	}
	if (status > 0 && t->live)
		return ward_fail(t->e, EAGAIN, "the new commits are examined at the end");
	if (status > 0)
		status = judge_each(&h, &ids, digits);
	strv_sort(&t->held);
	if (status == 0 && ids.len)
		status = hold_tags(&h, &ids);
	strv_sort(&t->held);
	return status < 0 ? ward_fail(t->e, -status, "cannot examine the new commits of %s: %s",
				      git_dir, strerror(-status))
			  : 0;
}
