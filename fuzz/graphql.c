/* Fuzzes GraphQL requests: as text, as JSON, as the query of a URL. What a narrow rule allows a
 * wider one does too, and what is allowed was understood. */
#include <assert.h>
#include <string.h>

#include "rules/body_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char narrow[] = "gquery:a\0gmutation:b*\0",
		  wide[] = "gquery\0gmutation\0gsubscription\0gpersisted\0";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct asked a, b;
	bool few, all;

	if (!n)
		return 0;
	few = graphql_text_fits(narrow, sizeof(narrow) - 1, (const char *)data, n, &a);
	all = graphql_text_fits(wide, sizeof(wide) - 1, (const char *)data, n, &b);
	assert(!few || all);
	assert(all == !b.wrong); /* the wide rule has everything that is understood */
	assert(!few || memchr(data, 'a', n) || memchr(data, 'b', n) ||
	       memmem(data, n, "__typename", 10));
	assert(strlen(a.text) < sizeof(a.text));
	few = graphql_body_fits(narrow, sizeof(narrow) - 1, data, n, &a);
	all = graphql_body_fits(wide, sizeof(wide) - 1, data, n, &b);
	assert(!few || all);
	assert(all == !b.wrong);
	few = graphql_query_fits(narrow, sizeof(narrow) - 1,
				 (struct http_text){ (const char *)data, n }, &a);
	all = graphql_query_fits(wide, sizeof(wide) - 1,
				 (struct http_text){ (const char *)data, n }, &b);
	assert(!few || all);
	assert(!few || graphql_query_speaks((struct http_text){ (const char *)data, n }));
	return 0;
}
