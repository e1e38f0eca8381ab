/* The server over HTTP: what web.c and token.c share. */
#ifndef WARD_CLI_MCP_WEB_H
#define WARD_CLI_MCP_WEB_H

#include "base/buf.h"
#include "policy/hostname.h"

struct web_address {
	struct ip ip;
	uint16_t port; /* 0: any */
	bool is_loopback;
};

/* Reads [ADDRESS:]PORT. */
must_check int web_read_address(const char *text, struct web_address *ret, struct ward_err *e);
/* A listening socket; the port is filled in. */
must_check int web_listen(struct web_address *a, struct ward_err *e);
/* The token of the file, or (NULL) a new one. */
must_check int web_token(const char *path, struct buf *ret, struct ward_err *e);

#endif
