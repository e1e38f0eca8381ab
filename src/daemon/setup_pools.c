/*
 * The options of pools: --pool TEMPLATE=N,... and --warm TEMPLATE=LANGUAGE[:MODULE+MODULE...],...
 * In: what the operator wrote. Out: pools, and what ward-envd shall have ready in sandboxes of a
 * template. Run before the server's processes part.
 */
#include <errno.h>
#include <string.h>

#include "daemon/pool.h"
#include "daemon/setup.h"

/* The pool of a template, a new one if need be. */
static struct pool *pool_of(struct setup *s, const char *option, const char *name,
			    struct ward_err *e)
{
	struct pool *p = s->pools;

	while (p < s->pools + s->pool_count && strcmp(p->template, name) != 0)
		p++;
	if (p < s->pools + s->pool_count)
		return p;
	if (!route_is_template(name))
		ward_fail(e, EINVAL, "--%s: \"%s\" is no name of a template", option, name);
	else if (s->pool_count == POOLS_MAX)
		ward_fail(e, E2BIG, "--%s: there are more than %d templates", option, POOLS_MAX);
	else
		p = &s->pools[s->pool_count++];
	if (*e->why)
		return NULL;
	snprintf(p->template, sizeof(p->template), "%s", name);
	return p;
}

static int read_size(struct pool *p, const char *value, struct ward_err *e)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n < 1 || n > 4000)
		return ward_fail(e, EINVAL, "--pool: a number from 1 to 4000, not \"%s\"", value);
	p->size = (unsigned)n;
	return 0;
}

static bool is_module(const char *text)
{
	return !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.-/@+")];
}

static int read_warm(struct pool *p, const char *value, struct ward_err *e)
{
	size_t n = strcspn(value, ":");
	bool known = (n == 6 && memcmp(value, "python", n) == 0) ||
		     (n == 10 && memcmp(value, "javascript", n) == 0);
	auto_buf setting = { 0 };

	if (!known)
		return ward_fail(e, EINVAL, "--warm: python or javascript, not \"%.*s\"", (int)n,
				 value);
	if (value[n] && !is_module(value + n + 1))
		return ward_fail(e, EINVAL, "--warm: \"%s\" are no names of modules",
				 value + n + 1);
	buf_printf(&setting, "." ENVD_READY "=%s", value);
	for (char *plus = setting.data; plus && (plus = strchr(plus, '+'));)
		*plus = ',';
	buf_add(&p->ready, buf_text(&setting), setting.len + 1);
	if (setting.failed || p->ready.failed || p->ready.len > ENVD_FRAME_BYTES / 8)
		return ward_fail(e, E2BIG, "--warm: that is too much for %s", p->template);
	return 0;
}

/* Each entry is TEMPLATE=VALUE. */
static int read_list(struct setup *s, const char *option, const char *text,
		     int (*read)(struct pool *p, const char *value, struct ward_err *e),
		     struct ward_err *e)
{
	auto_free char *copy = strdup(text);
	char *at = copy, *entry;
	int r = copy ? 0 : ward_fail(e, ENOMEM, "out of memory");

	while (r == 0 && (entry = strsep(&at, ","))) {
		char *value = strchr(entry, '=');
		struct pool *p;

		if (!value)
			return ward_fail(e, EINVAL, "--%s: expected TEMPLATE=..., got \"%s\"",
					 option, entry);
		*value++ = '\0';
		p = pool_of(s, option, entry, e);
		r = p ? read(p, value, e) : -EINVAL;
	}
	return r;
}

int setup_read_pools(struct setup *s, const char *sizes, const char *warm, struct ward_err *e)
{
	unsigned all = 0;
	int r = sizes ? read_list(s, "pool", sizes, read_size, e) : 0;

	if (r == 0 && warm)
		r = read_list(s, "warm", warm, read_warm, e);
	for (size_t i = 0; i < s->pool_count; i++)
		all += s->pools[i].size;
	if (r == 0 && all > s->most) {
		ward_fail(e, EINVAL, "--pool: %u sandboxes would wait, of %u that there may be",
			  all, s->most);
		return ward_remedy(e, "make the pools smaller, or --max larger");
	}
	for (size_t i = 0; i < s->pool_count && s->templates; i++)
		snprintf(s->pools[i].policy, sizeof(s->pools[i].policy), "%.*s/%s.yaml",
			 PATH_MAX - 1, s->templates, s->pools[i].template);
	return r;
}
