/*
 * The look before an apply. In: the changes of a review. Out: what a person should see of them,
 * beside ward diff and in front of ward apply: secrets and the constructs of tables/look.def.
 * ward-scan looks, here it is shown. It blocks where --block-on says so, and where the policy of
 * the run said credentials.scan_workspace: block; a person at a terminal may decide otherwise, a
 * script may not. Where looking fails, what would block blocks.
 */
#include "cli/look.h"
#include "cli/look_outside.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sarif.h"
#include "base/text.h"
#include "cli/question.h"

int look_read_options(const struct options *o, bool *ret_blocks, enum look_severity *ret_least,
		      struct ward_err *e)
{
	*ret_blocks = o->block_on != NULL;
	*ret_least = LOOK_HIGH;
	return !o->block_on || look_severity_read(o->block_on, ret_least)
		       ? 0
		       : ward_fail(e, EINVAL, "--block-on %.50s: expected low, medium or high",
				   o->block_on);
}

int look_review(const struct review *r, const struct changes *all, const struct strv *paths,
		struct look_findings *ret, struct ward_err *e)
{
	auto_buf list = { 0 };
	struct look_request q = { .new_fd = r->upper_fd,
				  .old_fd = r->workspace_fd,
				  .personal = r->record.personal };

	for (size_t i = 0; i < all->len; i++) {
		const struct change *c = &all->items[i];

		if (c->implied || !S_ISREG(c->new_mode) || !apply_is_selected(paths, c->path))
			continue;
		buf_add(&list, c->path, strlen(c->path) + 1);
	}
	if (list.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!list.len)
		return 0;
	q.paths = list.data;
	q.path_bytes = list.len;
	return look_run(&q, ret, e);
}

/* -- showing */

void look_put(const struct look_findings *f, struct buf *out)
{
	for (unsigned s = LOOK_SEVERITIES; s-- > 0;)
		for (size_t i = 0; i < f->len; i++) {
			const struct look_finding *x = &f->items[i];

			if (x->severity != (enum look_severity)s)
				continue;
			buf_printf(out, "%-6s %s", look_severity_name(x->severity), x->path);
			if (x->line)
				buf_printf(out, ":%llu", (unsigned long long)x->line);
			buf_printf(out, ": %s: %s\n", x->rule, x->title);
		}
}

void look_json(const struct look_findings *f, struct json *j)
{
	json_begin_array(j, "findings");
	for (size_t i = 0; i < f->len; i++) {
		const struct look_finding *x = &f->items[i];

		json_begin_object(j, NULL);
		json_string(j, "path", x->path);
		json_uint(j, "line", x->line);
		json_string(j, "severity", look_severity_name(x->severity));
		json_string(j, "kind", x->secret ? "secret" : "construct");
		json_string(j, "rule", x->rule);
		json_string(j, "title", x->title);
		json_end_object(j);
	}
	json_end_array(j);
}

void look_sarif(const struct look_findings *f, struct buf *out)
{
	static const enum sarif_level levels[] = { SARIF_NOTE, SARIF_WARNING, SARIF_ERROR };
	struct json j = { .out = out };

	sarif_begin(&j, "ward diff", NULL);
	sarif_results(&j);
	for (size_t i = 0; i < f->len; i++) {
		const struct look_finding *x = &f->items[i];

		sarif_result(&j, &(struct sarif_result){ .rule = x->rule,
							 .level = levels[x->severity],
							 .message = x->title,
							 .path = x->path,
							 .line = x->line });
	}
	sarif_end(&j);
}

/* -- before an apply */

static size_t secrets_of(const struct look_findings *f)
{
	size_t count = 0;

	for (size_t i = 0; i < f->len; i++)
		count += f->items[i].secret;
	return count;
}

static int refuse(size_t blocking, struct ward_err *e)
{
	ward_fail(e, EPERM, "nothing was applied: %zu finding%s block%s it", blocking,
		  blocking == 1 ? "" : "s", blocking == 1 ? "s" : "");
	return ward_remedy(e, "ward diff lists them; apply other paths, or decide at a terminal: "
			      "ward apply");
}

/* What is found blocks, unless somebody at the terminal decides otherwise. */
static int decide(const struct options *o, size_t blocking, struct ward_err *e)
{
	bool yes = false;
	int r = 0;

	if (!o->json && question_possible())
		r = question_yes("ward: apply it all the same? [y/N] ", false, &yes, e);
	return r < 0 || yes ? r : refuse(blocking, e);
}

int look_before_apply_on_exit(const struct review *r, struct ward_err *e)
{
	struct changes all = { 0 };
	struct look_findings found = { 0 };
	size_t blocking;
	int status;

	if (!r->record.blocks)
		return 0;
	status = changes_read(r, &all, NULL, e);
	if (status == 0)
		status = look_review(r, &all, &(struct strv){ 0 }, &found, e);
	changes_clear(&all);
	blocking = status == 0 ? secrets_of(&found) : 0;
	look_clear(&found);
	return blocking ? refuse(blocking, e) : status;
}

int look_before_apply(const struct options *o, const struct review *r, const struct strv *paths,
		      struct look_findings *ret, struct ward_err *e)
{
	struct changes all = { 0 };
	struct look_findings found = { 0 };
	enum look_severity least;
	bool blocks;
	size_t blocking;
	auto_buf text = { 0 };
	int status = look_read_options(o, &blocks, &least, e);

	if (status < 0 || (o->no_look && !r->record.blocks))
		return status;
	status = changes_read(r, &all, NULL, e);
	if (status == 0)
		status = look_review(r, &all, paths, &found, e);
	if (status == 0)
		status = look_outside(o, r, &all, paths, &found, e);
	changes_clear(&all);
	if (status < 0)
		look_clear(&found);
	if (status < 0 && (blocks || r->record.blocks || o->scanner))
		return status;
	if (status < 0) {
		buf_printf(&text, "ward: the changes were not looked through: %s\n", e->why);
		say_err(&text);
		*e = (struct ward_err){ 0 };
		return 0;
	}
	if (!o->json)
		look_put(&found, &text);
	if (text.len)
		say_err(&text);
	blocking = blocks ? look_count(&found, least) : 0;
	if (r->record.blocks && secrets_of(&found) > blocking)
		blocking = secrets_of(&found);
	*ret = found;
	return blocking ? decide(o, blocking, e) : 0;
}
