/*
 * The guard's built-in names (tables/protect.def, tables/steers.def), compiled when ward was built
 * (tools/gen_guard.c). What a policy or a tree adds lies over them (policy/ignore.c); they
 * themselves are never written.
 */
#include "guard/guard_internal.h"
#include "policy/ignore_internal.h"

#include "guard-builtin.h"

#define BUILT(name)                                                                                \
	{                                                                                          \
		.items = (struct pattern *)(uintptr_t)name##_items,                                \
		.count = ARRAY_LEN(name##_items), .chains = name##_CHAINS, .lasts = name##_LASTS,  \
		.aboves = name##_ABOVES,                                                           \
		.text = { .data = (char *)(uintptr_t)name##_text, .len = sizeof(name##_text) },    \
		.built = true                                                                      \
	}

static const struct ignore protect = BUILT(protect), links = BUILT(links), steers = BUILT(steers);

struct ignore *guard_builtin_protect(void)
{
	return (struct ignore *)(uintptr_t)&protect;
}

struct ignore *guard_builtin_links(void)
{
	return (struct ignore *)(uintptr_t)&links;
}

struct ignore *guard_builtin_steers(void)
{
	return (struct ignore *)(uintptr_t)&steers;
}
