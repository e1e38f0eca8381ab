/*
 * The engines: one row for each name that a policy can have in `isolation`, with how strong it is.
 * In: a policy, or a plan. Out: the engine. The first of the policy's list that this build has,
 * whose probe passes and that is at least as strong as require.isolation, is taken; where there is
 * none, the refusal says of each why. Some are inner runtimes inside a native sandbox
 * (plan/inner.h): their engine is native. A plan has been decided already: engine_choose() only
 * finds.
 */
#include "engine/engines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/gvisor/gvisor.h"
#include "engine/landlock/landlock_engine.h"
#include "engine/native/native.h"
#include "engine/oci/oci.h"
#include "engine/vm/vm.h"
#include "engine/wasm/wasm.h"
#include "plan/inner.h"

static const struct {
	const char *name;
	unsigned strength;           /* as require.isolation counts */
	const struct engine *engine; /* NULL: not in this build */
	const struct inner *inner;   /* that stands inside it, NULL: none */
} engines[] = {
	{ "native", REQUIRE_NAMESPACES, &engine_native, NULL },
	{ "oci", REQUIRE_NAMESPACES, &engine_oci, NULL },
	{ "gvisor", REQUIRE_GVISOR, &engine_native, &inner_gvisor },
	{ "vm", REQUIRE_VM, &engine_native, &inner_vm },
	{ "wasm", REQUIRE_NAMESPACES, &engine_native, &inner_wasm },
};

_Static_assert(ARRAY_LEN(engines) <= ENGINES_MAX, "ENGINES_MAX is too small");

const struct engine *engine_choose(const struct plan *p)
{
	if (p->level == LEVEL_LANDLOCK)
		return &engine_landlock;
	for (size_t i = 0; i < ARRAY_LEN(engines); i++)
		if (engines[i].engine && !engines[i].inner &&
		    strcmp(engines[i].name, p->engine) == 0)
			return engines[i].engine;
	return NULL;
}

static int probe(size_t i, struct ward_err *e)
{
	if (!engines[i].engine)
		return ward_fail(e, ENOTSUP, "%s is not yet supported by this build",
				 engines[i].name);
	if (engines[i].inner)
		return engines[i].inner->probe(e);
	return engines[i].engine->probe ? engines[i].engine->probe(e) : 0;
}

/* Whether the engine of that name will do. */
static int try_engine(const char *name, struct spec *s, struct ward_err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		int r;

		if (strcmp(engines[i].name, name) != 0)
			continue;
		r = engines[i].inner && engines[i].inner->in_image &&
				    strcmp(s->policy.image, "host") != 0
			    ? 0
			    : probe(i, e);
		if (r == 0 && engines[i].strength < s->policy.req_isolation)
			r = ward_fail(e, ENOTSUP, "%s is weaker than require.isolation", name);
		if (r < 0)
			return r;
		s->engine = engines[i].engine->name;
		s->inner = engines[i].inner;
		return s->inner && s->inner->want ? s->inner->want(s, e) : 0;
	}
	return ward_fail(e, EINVAL, "there is no engine %s", name);
}

int engine_pick(struct spec *s, struct ward_err *e)
{
	const struct strv *wanted = &s->policy.isolation;
	struct ward_err first = { 0 };
	auto_buf all = { 0 };

	for (size_t i = 0; i < wanted->len; i++) {
		struct ward_err why = { 0 };

		if (try_engine(wanted->items[i], s, &why) == 0) {
			if (all.len)
				strv_addf(&s->notes, "isolation: %s, because %s", wanted->items[i],
					  buf_text(&all));
			return 0;
		}
		buf_printf(&all, "%s%s", i ? "; " : "", why.why);
		if (!i)
			first = why;
	}
	ward_fail(e, first.code ? first.code : EINVAL, "isolation: %s",
		  wanted->len ? buf_text(&all) : "no engine given");
	return ward_remedy(e, "%s",
			   first.remedy[0] ? first.remedy
					   : "ward doctor shows the engines that work here");
}

size_t engines_look(struct engine_state states[ENGINES_MAX])
{
	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		states[i] = (struct engine_state){ .name = engines[i].name };
		states[i].usable = probe(i, &states[i].why) == 0;
		if (states[i].usable && engines[i].inner)
			states[i].inner = engines[i].inner->which ? engines[i].inner->which()
								  : engines[i].inner->help;
		if (states[i].usable && engines[i].inner && engines[i].inner->about) {
			auto_buf text = { 0 };

			engines[i].inner->about(&text);
			snprintf(states[i].about, sizeof(states[i].about), "%s", buf_text(&text));
		}
	}
	return ARRAY_LEN(engines);
}
