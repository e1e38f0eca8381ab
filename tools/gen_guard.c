/*
 * Compiles the built-in names of tables/protect.def, steers.def and versions.def when ward is
 * built: at each start that would take longer than all else that the guard of a small workspace
 * does. Out, on standard output: a header with the lists as guard_builtin.c wants them.
 */
#include <stdio.h>

#include "policy/ignore_internal.h"

static const char builtin[] =
#define PROTECT(pattern, why, source, checked) pattern "\n"
#define PROTECT_NOT(pattern, why) "!" pattern "\n"
#include "protect.def"
	;

static const char steering[] =
#define STEER(pattern, why, source, checked) pattern "\n"
#include "steers.def"
#define VERSION_FILE(name, form, source, checked) name "\n"
#include "versions.def"
	;

static void print_list(const char *name, const struct ignore *ig)
{
	printf("static const struct pattern %s_items[] = {\n", name);
	for (uint32_t i = 0; i < ig->count; i++) {
		const struct pattern *p = &ig->items[i];

		printf("\t{ %u, %u, %u, %uu, %uu, %u, %d, %d },\n", p->offset, p->len, p->literal,
		       p->next, p->hash, p->flags, p->last, p->above);
	}
	printf("};\nstatic const char %s_text[] = {", name);
	for (size_t i = 0; i < ig->text.len; i++)
		printf("%s%d,", i % 32 ? " " : "\n\t", ig->text.data[i]);
	printf("\n};\n#define %s_CHAINS {", name);
	for (uint32_t i = 0; i <= BUCKETS; i++)
		printf(" %uu,", ig->chains[i]);
	printf(" }\n#define %s_LASTS %#llxu\n#define %s_ABOVES %#llxu\n\n", name,
	       (unsigned long long)ig->lasts, name, (unsigned long long)ig->aboves);
}

int main(void)
{
	struct ignore *protect = NULL, *links = NULL, *steers = NULL;

	if (ignore_add(&protect, builtin, sizeof(builtin) - 1) < 0 ||
	    ignore_add_parents(&links, builtin, sizeof(builtin) - 1) < 0 ||
	    ignore_add(&steers, steering, sizeof(steering) - 1) < 0)
		return 1;
	print_list("protect", protect);
	print_list("links", links);
	print_list("steers", steers);
	ignore_free(protect);
	ignore_free(links);
	ignore_free(steers);
	return 0;
}
