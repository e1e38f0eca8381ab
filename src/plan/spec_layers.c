/*
 * What a policy file builds on. In: the bytes of a policy file. Out: those of every file and
 * profile that it extends, in the order in which they are read over each other, the profile that
 * they name, and one digest for the trust in all of it. A found file may have been written by an
 * agent, and so may what it extends: each is opened once and read once, and the bytes that are
 * hashed are the bytes that are parsed. Refuses a file that extends itself, more than LAYERS_MAX
 * documents, and profiles that build on anything. Runs in `ward` with the user's rights, only where
 * a file says profile or extends.
 */
#include "plan/spec_layers.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "plan/profile.h"
#include "plan/spec.h"
#include "plan/spec_source.h"

/* The files that led here, for cycles. */
struct chain {
	const char *path, *name;
	const struct chain *up;
	unsigned depth;
};

static void layer_clear(struct document *l)
{
	free(l->name);
	free(l->path);
	buf_free(&l->bytes);
	*l = (struct document){ 0 };
}

void layers_clear(struct layers *l)
{
	while (l->count)
		layer_clear(&l->items[--l->count]);
	free(l->profile);
	*l = (struct layers){ 0 };
}

/* A word without a slash and without the ending of a document is the name of a profile. */
static bool is_profile(const char *text)
{
	const char *dot = strrchr(text, '.');

	return !strchr(text, '/') && *text != '~' &&
	       !(dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 ||
			 strcmp(dot, ".json") == 0));
}

static int open_profile(const char *name, struct document *ret, struct ward_err *e)
{
	auto_free char *where = NULL;
	int r = profile_read(name, &ret->bytes, &where, e);

	if (r < 0)
		return r;
	ret->profile = true;
	ret->path = where ? realpath(where, NULL) : NULL;
	if (where)
		ret->name = strdup(where);
	else if (asprintf(&ret->name, "profile %s", name) < 0)
		ret->name = NULL;
	return ret->name && (!where || ret->path) ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

/* Relative to the file that names it; shown the same way. */
static int open_file(const char *text, const struct chain *from, struct document *ret,
		     struct ward_err *e)
{
	const char *slash = strrchr(from->path, '/'), *shown = strrchr(from->name, '/');
	auto_free char *dir =
		strndup(from->path, slash == from->path ? 1 : (size_t)(slash - from->path));
	auto_free char *full = dir ? spec_absolute(dir, text) : NULL;
	bool relative = *text != '/' && *text != '~' && shown;

	if (!full)
		return ward_fail(e, ENOMEM, "out of memory");
	if (spec_open_policy(full, &ret->bytes, &ret->path, e) < 0)
		return -e->code;
	if (asprintf(&ret->name, "%.*s%s", relative ? (int)(shown - from->name) + 1 : 0, from->name,
		     text) < 0) {
		ret->name = NULL;
		return ward_fail(e, ENOMEM, "out of memory");
	}
	return 0;
}

static int check_cycle(const struct document *next, const struct chain *from, struct ward_err *e)
{
	for (const struct chain *c = from; c && next->path; c = c->up)
		if (strcmp(c->path, next->path) == 0) {
			ward_fail(e, ELOOP, "%.300s extends itself%s%.300s", next->name,
				  c == from ? "" : " by way of ", c == from ? "" : from->name);
			return ward_remedy(e, "remove one of the two extends");
		}
	if (from->depth < LAYERS_DEEP)
		return 0;
	ward_fail(e, ELOOP, "files extend each other more than %d deep", LAYERS_DEEP);
	return ward_remedy(e, "let this file extend the others directly, as a list");
}

static int keep(struct layers *l, struct document *layer, struct ward_err *e)
{
	if (l->count == LAYERS_MAX)
		return ward_fail(e, E2BIG, "a policy extends at most %d files", LAYERS_MAX - 1);
	l->items[l->count++] = *layer;
	*layer = (struct document){ 0 };
	return 0;
}

/* A profile stands on its own: what it builds on would not be where anybody looks. */
static int check_profile(const struct policy *p, const struct document *layer, struct ward_err *e)
{
	if (p->origin[POLICY_F_profile].source == POLICY_DEFAULT &&
	    p->origin[POLICY_F_extends].source == POLICY_DEFAULT)
		return 0;
	ward_fail(e, EINVAL, "%.300s: a profile cannot have profile or extends", layer->name);
	return ward_remedy(e, "name both in the policy file: extends: [ONE, OTHER]");
}

static int gather(struct layers *l, struct document *layer, const struct chain *up,
		  struct policy_errors *errors, struct ward_err *e);

static int gather_all(struct layers *l, const struct policy *p, const struct chain *here,
		      struct policy_errors *errors, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->extends.len; i++) {
		const char *text = p->extends.items[i];
		struct document next = { 0 };

		r = is_profile(text) ? open_profile(text, &next, e)
				     : open_file(text, here, &next, e);
		if (r == 0)
			r = check_cycle(&next, here, e);
		if (r < 0)
			ward_wrap(e, "%.200s:%u: extends", here->name,
				  p->origin[POLICY_F_extends].line);
		else
			r = gather(l, &next, here, errors, e);
		layer_clear(&next);
	}
	return r;
}

/* Reads a document alone, for what it builds on; then everything below it, then itself. */
static int gather(struct layers *l, struct document *layer, const struct chain *up,
		  struct policy_errors *errors, struct ward_err *e)
{
	const struct chain here = {
		.path = layer->path, .name = layer->name, .up = up, .depth = up ? up->depth + 1 : 0
	};
	struct policy own = { 0 };
	int r = policy_defaults(&own, e);

	if (r == 0)
		r = spec_parse(&own, layer->name, &layer->bytes, POLICY_FILE, errors, e);
	if (r == 0 && layer->profile)
		r = check_profile(&own, layer, e);
	if (r == 0)
		r = gather_all(l, &own, &here, errors, e);
	if (r == 0 && own.origin[POLICY_F_profile].source == POLICY_FILE) {
		free(l->profile);
		l->profile = take_ptr(own.profile);
		l->profile_said = true;
	}
	if (r == 0)
		r = keep(l, layer, e);
	policy_clear(&own);
	return r;
}

int layers_gather(struct layers *l, const char *name, const char *path, const struct buf *bytes,
		  struct policy_errors *errors, struct ward_err *e)
{
	struct document own = { .name = strdup(name), .path = strdup(path) };
	int r;

	buf_add(&own.bytes, buf_text(bytes), bytes->len);
	r = own.name && own.path && !own.bytes.failed ? gather(l, &own, NULL, errors, e)
						      : ward_fail(e, ENOMEM, "out of memory");
	layer_clear(&own);
	return r;
}

static int apply_one(const struct document *l, bool last, struct spec *s,
		     struct policy_errors *errors, struct ward_err *e)
{
	const char *slash = l->path ? strrchr(l->path, '/') : NULL;
	auto_free char *dir =
		slash ? strndup(l->path, slash == l->path ? 1 : (size_t)(slash - l->path))
		      : strdup("/");
	int r;

	strv_add(&s->files, l->name);
	if (l->path && !last)
		strv_add(l->profile ? &s->own_files : &s->unnamed_files, l->path);
	if (!dir || s->files.failed || s->own_files.failed || s->unnamed_files.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	s->policy.file = (unsigned)s->files.len;
	r = spec_parse(&s->policy, l->name, &l->bytes, POLICY_FILE, errors, e);
	return r < 0 || last ? r : spec_resolve_paths(&s->policy, POLICY_FILE, dir, e);
}

int layers_apply(const struct layers *l, struct spec *s, struct policy_errors *errors,
		 struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->count; i++)
		r = apply_one(&l->items[i], i + 1 == l->count, s, errors, e);
	layers_digest(l, s->digest);
	return r;
}

static size_t count_files(const struct layers *l)
{
	size_t count = 0;

	for (size_t i = 0; i < l->count; i++)
		count += !l->items[i].profile;
	return count;
}

void layers_digest(const struct layers *l, char ret_hex[SHA256_HEX])
{
	static const char set[] = "ward policy set\n";
	bool several = count_files(l) > 1;
	struct sha256 all;

	sha256_begin(&all);
	if (several)
		sha256_add(&all, set, sizeof(set) - 1);
	for (size_t i = 0; i < l->count; i++) {
		const struct document *layer = &l->items[i];
		char one[SHA256_HEX];

		if (layer->profile)
			continue;
		sha256_hex(buf_text(&layer->bytes), layer->bytes.len, one);
		if (several)
			sha256_add(&all, one, sizeof(one));
		else
			sha256_add(&all, buf_text(&layer->bytes), layer->bytes.len);
	}
	sha256_end_hex(&all, ret_hex);
}

void layers_text(const struct layers *l, struct buf *out)
{
	bool several = count_files(l) > 1;

	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].profile)
			continue;
		if (several) {
			buf_puts(out, "# file ");
			text_escape(out, l->items[i].name);
			buf_puts(out, "\n");
		}
		buf_add(out, buf_text(&l->items[i].bytes), l->items[i].bytes.len);
		if (several && out->len && out->data[out->len - 1] != '\n')
			buf_puts(out, "\n");
	}
}
