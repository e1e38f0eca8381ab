/*
 * The keeper's list of templates. In: the directory of policies. Out: a line for each template: its
 * name, and what its policy grants (keeper_facts.h). A policy that cannot be planned here is left
 * out: no sandbox could be started with it either. Run by the keeper.
 */
#include <dirent.h>
#include <string.h>

#include "daemon/keeper.h"
#include "daemon/keeper_facts.h"

#define TEMPLATES_MOST 1024

static void add(struct work *w, const char *name)
{
	struct ward_spec *s = ward_spec_new();
	char policy[PATH_MAX];
	size_t before = w->text.len;

	snprintf(w->q.template, sizeof(w->q.template), "%s", name);
	snprintf(w->q.id, sizeof(w->q.id), "%s0000000000000000", w->k->tag);
	buf_printf(&w->text, "%s ", name);
	if (!s || keeper_find_policy(w, policy) < 0 || keeper_fill_spec(w, s, policy) < 0 ||
	    keeper_facts(s, policy, &w->text, &w->e) < 0) {
		w->text.len = before;
		if (w->text.data)
			w->text.data[before] = '\0';
	}
	ward_spec_free(s);
}

int keeper_list_templates(struct work *w)
{
	DIR *d = w->k->templates ? opendir(w->k->templates) : NULL;
	const struct dirent *entry;
	unsigned count = 0, seen = 0;
	const char *built_in;

	while (d && count < TEMPLATES_MOST && (entry = readdir(d))) {
		size_t n = strlen(entry->d_name);
		char name[TEMPLATE_MAX + 1];

		if (n <= 5 || n - 5 > TEMPLATE_MAX || strcmp(entry->d_name + n - 5, ".yaml") != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(n - 5), entry->d_name);
		if (!route_is_template(name))
			continue;
		for (size_t i = 0; (built_in = route_built_in(i)); i++)
			seen |= strcmp(name, built_in) == 0 ? 1U << i : 0;
		add(w, name);
		count++;
	}
	if (d)
		closedir(d);
	for (size_t i = 0; (built_in = route_built_in(i)); i++)
		if (!(seen & 1U << i))
			add(w, built_in);
	return 0;
}
