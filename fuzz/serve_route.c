/* Fuzzes where a request of ward serve goes: sandbox and port from host and headers, rows of the
 * control plane, and bodies of its calls. */
#include <assert.h>
#include <string.h>

#include "daemon/front.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void body(const uint8_t *data, size_t n)
{
	struct small_request small;
	struct access_request token;
	struct create c;

	if (access_read_request(data, n, false, &token)) {
		const struct access_when when = { .now_ms = 1, .source = { .family = 4 } };
		const struct access_what what = { .owner = "", .labels = "{}", .template = "" };

		assert(token.who.role != ROLE_NONE && token.ttl_s > 0 && !*token.wrong);
		assert(access_decide(&token.who, RIGHT_READ, &what, &when) < ACCESS_CHECKS);
	} else {
		assert(*token.wrong);
	}

	if (control_read_create(data, n, &c)) {
		assert(route_is_template(c.template) && !c.status && c.config.len <= CONFIG_MAX);
		assert(c.timeout_s == -1 || (c.timeout_s > 0 && c.timeout_s <= 30 * 24 * 3600));
	} else {
		assert(c.status >= 400 && c.status < 600 && *c.wrong);
	}
	if (!c.status && c.mask_host.len) {
		struct host host;
		uint16_t port;

		assert(control_mask_host(c.mask_host.data, 65535, &host, &port) && port);
	}
	control_free_create(&c);
	if (control_read_network(data, n, &c))
		assert(!c.status && !c.metadata.len && !c.config.len && !c.mask_host.len);
	else
		assert(c.status >= 400 && c.status < 600 && *c.wrong);
	control_free_create(&c);
	if (control_read_small(data, n, &small))
		assert(small.timeout_s >= -1 && small.count >= -1 &&
		       (!*small.name || route_is_template(small.name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct http_request r;
	struct http_head head;
	enum http_wrong wrong;
	struct route_to to;
	size_t scanned = 0;
	char id[NAMED_MAX + 1];
	unsigned status;

	body(data, n);
	if (http1_head(data, n, &scanned, &head, &wrong) <= 0 ||
	    !http_request_read(data, &head, &r))
		return 0;
	if (route_host(&head.host, &r.fields, &to) > 0)
		assert(strlen(to.id) == 0 || strlen(to.id) == SANDBOX_ID);
	if (route_find(r.method, r.path, id, sizeof(id), &status) != ROUTE_NONE)
		assert(strlen(id) <= NAMED_MAX);
	return 0;
}
